/// What requests and probes have met with at a listed endpoint, since the client was made. Changes of the
/// network and of the list do not reset it. It only informs: no plan depends on it.
package struct EndpointCounts: Hashable, Sendable {
  /// The number of responses with other statuses than 502, 503 and 504.
  package private(set) var responses = 0
  /// The sum of the waits of these responses in nanoseconds, each from the last byte of the request to the first
  /// byte of the response.
  package private(set) var waits: Int64 = 0
  /// The numbers of failures, by what they were: a kind (`LegFailure.Kind.name`), or a status: 502, 503 or 504.
  package private(set) var failures: [String: Int] = [:]

  package init() {}

  /// Counts a response.
  ///
  /// - Parameter wait: its wait in nanoseconds.
  mutating func answered(after wait: Int64) {
    responses += 1
    waits = waits.addingClamped(max(0, wait))
  }

  mutating func failed(_ failure: String) { failures[failure, default: 0] += 1 }
}
