from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdmitRequest(_message.Message):
    __slots__ = ("protocol", "version", "name", "token")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    version: str
    name: str
    token: str
    def __init__(self, protocol: _Optional[int] = ..., version: _Optional[str] = ..., name: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class AdmitReply(_message.Message):
    __slots__ = ("certificate", "refusal")
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    certificate: bytes
    refusal: Notice
    def __init__(self, certificate: _Optional[bytes] = ..., refusal: _Optional[_Union[Notice, _Mapping]] = ...) -> None: ...

class ClientFrame(_message.Message):
    __slots__ = ("hello", "received", "reply", "chunk", "heartbeat")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    received: Received
    reply: Reply
    chunk: Chunk
    heartbeat: Heartbeat
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., received: _Optional[_Union[Received, _Mapping]] = ..., reply: _Optional[_Union[Reply, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("welcome", "task", "chunk", "go", "received", "notice", "certificate")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    GO_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    task: Task
    chunk: Chunk
    go: Go
    received: Received
    notice: Notice
    certificate: Certificate
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ..., go: _Optional[_Union[Go, _Mapping]] = ..., received: _Optional[_Union[Received, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., certificate: _Optional[_Union[Certificate, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "version", "key", "name", "capabilities")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    version: str
    key: bytes
    name: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocol: _Optional[int] = ..., version: _Optional[str] = ..., key: _Optional[bytes] = ..., name: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: int
    def __init__(self, node: _Optional[int] = ...) -> None: ...

class Certificate(_message.Message):
    __slots__ = ("pem",)
    PEM_FIELD_NUMBER: _ClassVar[int]
    pem: bytes
    def __init__(self, pem: _Optional[bytes] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "run", "kind", "group", "created", "ttl", "size", "data")
    ID_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    run: int
    kind: str
    group: str
    created: float
    ttl: float
    size: int
    data: bytes
    def __init__(self, id: _Optional[str] = ..., run: _Optional[int] = ..., kind: _Optional[str] = ..., group: _Optional[str] = ..., created: _Optional[float] = ..., ttl: _Optional[float] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Received(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: str
    def __init__(self, task: _Optional[str] = ...) -> None: ...

class Go(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: str
    def __init__(self, task: _Optional[str] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("task", "code", "reason", "size", "data")
    TASK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    task: str
    code: int
    reason: str
    size: int
    data: bytes
    def __init__(self, task: _Optional[str] = ..., code: _Optional[int] = ..., reason: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Notice(_message.Message):
    __slots__ = ("kind", "task", "text")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[Notice.Kind]
        NOT_ADMITTED: _ClassVar[Notice.Kind]
        REPLACED: _ClassVar[Notice.Kind]
        RUN_OVER: _ClassVar[Notice.Kind]
        TOO_LARGE: _ClassVar[Notice.Kind]
        MALFORMED: _ClassVar[Notice.Kind]
        TOO_MANY: _ClassVar[Notice.Kind]
        VERSION: _ClassVar[Notice.Kind]
        LATE: _ClassVar[Notice.Kind]
        CERTIFICATE_NEEDED: _ClassVar[Notice.Kind]
    UNSPECIFIED: Notice.Kind
    NOT_ADMITTED: Notice.Kind
    REPLACED: Notice.Kind
    RUN_OVER: Notice.Kind
    TOO_LARGE: Notice.Kind
    MALFORMED: Notice.Kind
    TOO_MANY: Notice.Kind
    VERSION: Notice.Kind
    LATE: Notice.Kind
    CERTIFICATE_NEEDED: Notice.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: Notice.Kind
    task: str
    text: str
    def __init__(self, kind: _Optional[_Union[Notice.Kind, str]] = ..., task: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("contents", "tasks", "awaited", "upload", "beside")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[bytes]
    tasks: _containers.RepeatedCompositeFieldContainer[Addressed]
    awaited: _containers.RepeatedScalarFieldContainer[str]
    upload: float
    beside: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, contents: _Optional[_Iterable[bytes]] = ..., tasks: _Optional[_Iterable[_Union[Addressed, _Mapping]]] = ..., awaited: _Optional[_Iterable[str]] = ..., upload: _Optional[float] = ..., beside: _Optional[_Iterable[str]] = ...) -> None: ...

class Addressed(_message.Message):
    __slots__ = ("id", "node", "content", "kind", "group", "created", "ttl", "most")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    id: str
    node: int
    content: int
    kind: str
    group: str
    created: float
    ttl: float
    most: int
    def __init__(self, id: _Optional[str] = ..., node: _Optional[int] = ..., content: _Optional[int] = ..., kind: _Optional[str] = ..., group: _Optional[str] = ..., created: _Optional[float] = ..., ttl: _Optional[float] = ..., most: _Optional[int] = ...) -> None: ...

class Answers(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[Answer]
    def __init__(self, answers: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("task", "code", "reason", "content")
    TASK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    task: str
    code: int
    reason: str
    content: bytes
    def __init__(self, task: _Optional[str] = ..., code: _Optional[int] = ..., reason: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...
