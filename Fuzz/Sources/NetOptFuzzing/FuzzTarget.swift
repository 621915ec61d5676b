/// The fuzz targets: the parsers of input that others write, and the code built on them. `make fuzz` gives
/// the targets inputs that libFuzzer generates. A test gives them the inputs in `Fuzz/Corpus`, and mutations
/// of these.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// Structured fields (RFC 9651) of all types.
  case structuredFields = "structured-fields"
  /// Raw HTTP/1.1 requests, and their verification in every scheme.
  case messages
  /// Lines of JSON Lines (`SigningLine`), each with a request to verify and how to verify it.
  case lines
  /// The path and query of requests, and their canonical form for signing.
  case canonical
  /// Key rings.
  case keyRings = "key-rings"
  /// Endpoint lists.
  case lists
  /// Configuration files.
  case configurations
  /// Public keys and signatures of minisign.
  case minisign
  /// Saved ranking histories.
  case histories
  /// Fields of requests and responses, and the cache's decisions about them.
  case cacheHeaders = "cache-headers"
  /// Saved runs of `netopt bench`, and their evaluation.
  case savedRuns = "saved-runs"
  /// Responses of name servers, and the check of the names in them.
  case dnsMessages = "dns-messages"
  /// HTTP/1.1 responses, which a server on loopback sends to a client.
  case heads
  /// Chunked bodies, which a server on loopback sends to a client after a valid head.
  case chunks
  /// HTTP/2 frames, which a server on loopback sends in response to the first request of a connection.
  case frames

  /// The targets whose inputs are the bytes that a server sends in response to a request. These targets block
  /// the calling thread while a client receives the response.
  package static let ofAnswers: [FuzzTarget] = [.heads, .chunks, .frames]

  /// Runs the target on an input.
  ///
  /// - Returns: a description of the rule that this input breaks although nothing crashed; `nil` when all
  ///   rules hold.
  package func fault(in input: [UInt8]) -> String? {
    switch self {
    case .structuredFields: FormatRules.structuredField(input)
    case .messages: SigningRules.message(input)
    case .lines: SigningRules.line(input)
    case .canonical: CanonicalRules.target(input)
    case .keyRings: FormatRules.keyRing(input)
    case .lists: FormatRules.list(input)
    case .configurations: FormatRules.configuration(input)
    case .minisign: FormatRules.minisign(input)
    case .histories: FormatRules.history(input)
    case .cacheHeaders: CachingRules.headers(input)
    case .savedRuns: SavedRunRules.run(input)
    case .dnsMessages: FormatRules.dnsMessage(input)
    case .heads: AnswerRules.heads(input)
    case .chunks: AnswerRules.chunks(input)
    case .frames: AnswerRules.frames(input)
    }
  }
}
