/// What a reference implementation makes of the bytes that a server sends in response to a GET before it ends
/// the connection.
enum ReferenceAnswer {
  /// A complete response. A client must deliver it if it is strict, and otherwise may reject it.
  case whole(WholeAnswer)
  /// No valid response: a client must report an error. The text names the broken rule.
  case broken(String)
  /// The RFCs let a client either deliver a response or report an error.
  case open
}

/// A complete response as a reference implementation reads it.
struct WholeAnswer {
  let status: Int
  /// The fields of the head in order, with the names in lower case. Trailers are not among them.
  let fields: [(name: String, value: [UInt8])]
  let body: [UInt8]
  /// Whether the response has no deviation for which a client may reject it, so that every client must accept
  /// it.
  let isStrict: Bool
}

/// Why a reference implementation stops before the end of a response.
enum ReferenceEnding: Error {
  /// The bytes break a rule, which the text names.
  case broken(String)
  /// The RFCs let a client deliver a response or report an error.
  case open

  /// This ending as the result of the reference implementation.
  var answer: ReferenceAnswer {
    switch self {
    case .broken(let why): .broken(why)
    case .open: .open
    }
  }
}
