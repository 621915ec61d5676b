/// The meaning of the bytes that a server sends in response to a GET until it ends the connection.
enum ReferenceAnswer {
  /// A response.
  case whole(WholeAnswer)
  /// No valid response: a client must not accept it.
  case broken(String)
  /// The RFCs leave the choice to the client.
  case open
}

/// A response as the reference reads it.
struct WholeAnswer {
  let status: Int
  /// The names in lower case, and the values, in order, without trailers.
  let fields: [(name: String, value: [UInt8])]
  let body: [UInt8]
  /// Whether the response keeps every rule, so that every client must accept it. A client may reject other
  /// responses.
  let isStrict: Bool
}

/// Why a reference stops reading.
enum ReferenceEnding: Error {
  case broken(String)
  case open

  var answer: ReferenceAnswer {
    switch self {
    case .broken(let why): .broken(why)
    case .open: .open
    }
  }
}
