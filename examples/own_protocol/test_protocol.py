from conftest import TopPixels

from attrcheck.testing import parametrize_with_laws


@parametrize_with_laws(TopPixels(), TopPixels(share=0.5))
def test_each_law(protocol_law):
    protocol_law()
