// A program that imports this module also gets the requests, responses and errors (NetOptCore) and the list
// (NetOptRouting).
@_exported public import NetOptCore
@_exported public import NetOptRouting
