"""Diagrams are whole SVG documents with every participant and message."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tools.pictures import PICTURES, drawn


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_all_of_its_diagram(name: str) -> None:
    """Each text is there, within the frame."""
    diagram = PICTURES[name]
    root = ElementTree.fromstring(drawn(diagram))
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    texts = {each.text: each for each in root.iter("{http://www.w3.org/2000/svg}text")}
    for text in (*diagram.participants, *(message.text for message in diagram.messages)):
        assert 0 < float(texts[text].attrib["x"]) < width
        assert 0 < float(texts[text].attrib["y"]) < height


def test_messages_are_between_participants() -> None:
    """A diagram names no participant that it does not have."""
    for diagram in PICTURES.values():
        for message in diagram.messages:
            assert {message.source, message.target} <= set(range(len(diagram.participants)))
