// A program that imports this module also gets the types of its signatures: errors, header fields and requests.
@_exported public import NetOptCore
