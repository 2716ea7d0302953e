"""The committed code of the door's frames is that of `door.proto`. It holds the compiled file, so no compiler is needed."""

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from common.door import door_pb2

SOURCE = Path(door_pb2.__file__).with_name("door.proto")


def enum_text(enum: EnumDescriptorProto) -> str:
    values = [f"{value.name} = {value.number};" for value in enum.value]
    values += [f"reserved {gap.start};" for gap in enum.reserved_range]
    return f"enum {enum.name} {{ {' '.join(values)} }}"


def field_text(field: FieldDescriptorProto, package: str) -> str:
    named = field.type_name.removeprefix(f".{package}.").rpartition(".")[2]
    kind = named or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    repeated = "repeated " if field.label == FieldDescriptorProto.LABEL_REPEATED else ""
    return f"{repeated}{kind} {field.name} = {field.number};"


def message_text(message: DescriptorProto, package: str) -> Iterator[str]:
    yield f"message {message.name} {{"
    yield from map(enum_text, message.enum_type)
    choices = [field for field in message.field if field.HasField("oneof_index")]
    if choices:
        yield f"oneof {message.oneof_decl[0].name} {{ {' '.join(field_text(one, package) for one in choices)} }}"
    yield from (field_text(one, package) for one in message.field if one not in choices)
    yield from (f"reserved {gap.start};" for gap in message.reserved_range)
    yield "}"


def test_the_committed_code_is_that_of_the_proto_file() -> None:
    file = FileDescriptorProto.FromString(door_pb2.DESCRIPTOR.serialized_pb)
    [service] = file.service
    text = [f'syntax = "{file.syntax}"; package {file.package}; service {service.name} {{']
    for method in service.method:
        names = (method.input_type.rpartition(".")[2], method.output_type.rpartition(".")[2])
        takes, gives = zip(
            ("stream " * method.client_streaming, "stream " * method.server_streaming), names, strict=True
        )
        text.append(f"rpc {method.name}({''.join(takes)}) returns ({''.join(gives)});")
    text += ["}", *(line for message in file.message_type for line in message_text(message, file.package))]
    source = " ".join(re.sub("//.*", "", SOURCE.read_text("utf-8")).split()).replace("{}", "{ }")
    assert source == " ".join(text), "run make proto"
    typed = SOURCE.with_name("door_pb2.pyi").read_text("utf-8")
    for message in file.message_type:
        declared = typed.partition(f"class {message.name}(")[2].partition("\nclass ")[0]
        assert all(f"    {field.name}: " in declared for field in message.field), f"{message.name}: run make proto"
