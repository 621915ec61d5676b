// A program that uses the client needs one import: the exports add requests, responses, errors, the list and
// signatures.
@_exported public import NetOptCore
@_exported public import NetOptRouting
