/// What bytes that a server sends, up to the end of the connection, mean to somebody who asked by GET.
enum ReferenceAnswer {
  /// An answer.
  case whole(WholeAnswer)
  /// None: whoever takes it for one is wrong.
  case broken(String)
  /// The RFCs leave it to the client.
  case open
}

/// An answer as the reference reads it.
struct WholeAnswer {
  let status: Int
  /// Names in lower case, and values, in their order. Without the fields of trailers.
  let fields: [(name: String, value: [UInt8])]
  let body: [UInt8]
  /// Whether it keeps every rule, so that every client has to take it; else a client may refuse it.
  let isStrict: Bool
}

/// Why a reference stops to read.
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
