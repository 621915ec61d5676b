/// What is fuzzed: the parsers that read what others wrote, and what is built on them. `make fuzz` gives them inputs that libFuzzer
/// makes up; a test gives them the corpora in `Fuzz/Corpus`, and changes of these.
package enum FuzzTarget: String, CaseIterable, Sendable {
  /// Structured fields (RFC 9651), in all their forms.
  case structuredFields = "structured-fields"
  /// Raw HTTP/1.1 requests, and the verifier of every scheme on what they say.
  case messages
  /// Lines of JSON Lines, verified as they ask for.
  case lines
  /// Targets of requests, and their canonical form.
  case canonical
  /// Key rings.
  case keyRings = "key-rings"
  /// Lists of endpoints.
  case lists
  /// Public keys and signatures of minisign's.
  case minisign
  /// What was learned of routes and kept in a file.
  case histories
  /// Fields of requests and responses, and what the cache decides by them.
  case cacheHeaders = "cache-headers"
  /// Runs of bench that were saved, and what is made of them.
  case savedRuns = "saved-runs"
  /// Answers of name servers, as far as their names are looked at.
  case dnsMessages = "dns-messages"
  /// Answers over HTTP/1.1, which a server on loopback sends to a client. These three block the thread.
  case heads
  /// Chunked bodies, the same way.
  case chunks
  /// Frames that answer the first request of an HTTP/2 connection.
  case frames

  /// Those whose inputs are answers of servers. Their faults are found through a connection, and the calling thread waits for it.
  package static let ofAnswers: [FuzzTarget] = [.heads, .chunks, .frames]

  /// Runs the target.
  ///
  /// - Returns: what is wrong although nothing crashed: a rule that does not hold for this input. `nil` when all is well.
  package func fault(in input: [UInt8]) -> String? {
    switch self {
    case .structuredFields: FormatRules.structuredField(input)
    case .messages: SigningRules.message(input)
    case .lines: SigningRules.line(input)
    case .canonical: CanonicalRules.target(input)
    case .keyRings: FormatRules.keyRing(input)
    case .lists: FormatRules.list(input)
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
