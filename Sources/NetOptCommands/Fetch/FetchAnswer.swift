import NetOptCore
import NetOptSigning

/// Creates the output lines of `netopt fetch --jsonl`: docs/schemas/fetch-answer.schema.json.
enum FetchAnswer {
  /// Returns the output line for a response with its complete body.
  ///
  /// - Parameter id: the `id` member of the input line.
  static func line(_ id: JSONValue, _ response: NetOptResponse, body: [UInt8]) -> JSONValue {
    var answer: JSONValue = [
      "id": id,
      "status": .integer(Int64(response.status)),
      "reason": .string(ReasonPhrase.of(response.status)),
      "headers": .array(response.headers.map { [.string($0.name), .string($0.value)] }),
    ]
    // A body that is not valid UTF-8 is binary data: the command tries no other text encoding.
    if let text = String(validating: body, as: UTF8.self) {
      answer.append("body", .string(text))
    } else {
      answer.append("body_base64", .string(String(decoding: Base64.encode(body), as: UTF8.self)))
    }
    answer.append("from_cache", .bool(response.cacheStatus.isFromCache))
    return answer
  }

  /// Returns the output line for a request that failed, or for an input line that is not a valid request.
  static func line(_ id: JSONValue, _ error: NetOptError) -> JSONValue { ["id": id, "error": error.json] }
}

/// The reason phrases of status codes, such as "Not Found" (RFC 9110, section 15). The output shows these
/// phrases instead of the server's: HTTP/2 sends none, and clients ignore the phrases of HTTP/1.1.
enum ReasonPhrase {
  private static let phrases: [Int: String] = [
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
    205: "Reset Content", 206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently",
    302: "Found",
    303: "See Other", 304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request", 422: "Unprocessable Content", 426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 511: "Network Authentication Required",
  ]

  /// Returns the reason phrase of a status code; an empty string for a code without a phrase.
  static func of(_ status: Int) -> String { phrases[status] ?? "" }
}
