"""Types that no record of the model has are refused where they would be read, not misread."""

from __future__ import annotations

from typing import Any

import pytest

from pycobre.hydro.files.json_types import described
from pycobre.hydro.model.record import RECORDS


@pytest.mark.parametrize("kind", [set[int], object, list[str], bytes])
def test_a_type_that_is_not_described_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="expected a type that records are made of, got another"):
        described(kind)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_record_refuses_a_key_that_it_does_not_have(name: str) -> None:
    from pydantic_core import SchemaValidator, ValidationError

    with pytest.raises(ValidationError, match="surplus\n  Unexpected keyword argument"):
        SchemaValidator(described(RECORDS[name])).validate_python({"surplus": 1})
