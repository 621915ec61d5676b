// One import is enough for those who use the client: requests, responses, errors, the list,
// signatures.
@_exported public import NetOptCore
@_exported public import NetOptRouting
