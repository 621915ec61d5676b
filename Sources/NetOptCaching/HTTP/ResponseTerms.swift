package import NetOptCore

/// The caching terms of a stored response, parsed once when it is stored. A hit reads them and parses
/// nothing.
package struct ResponseTerms: Sendable {
  /// The directives of `Cache-Control`.
  package let control: CacheControl
  /// The freshness of the response.
  package let freshness: Freshness
  /// The validators of the response.
  package let validators: Validators
  /// When the response head was received, in milliseconds since 1970.
  package let received: Int64

  /// Reads a response's fields.
  ///
  /// - Parameters:
  ///   - requested: when the request was sent, in milliseconds since 1970.
  ///   - received: when the response head was received, in milliseconds since 1970.
  package init(status: Int, fields: HeaderFields, requested: Int64, received: Int64) {
    control = CacheControl(fields)
    freshness = Freshness(
      status: status, fields: fields, control: control, requested: requested, received: received)
    validators = Validators(fields)
    self.received = received
  }

  /// The age of the response in milliseconds (RFC 9111, section 4.2.3). When the clock was set back to a time
  /// before the response was received, the age is unknown, and the result is `Int64.max`. Otherwise the
  /// response would stay fresh until the clock catches up.
  package func age(at now: Int64) -> Int64 {
    guard now >= received else { return .max }
    return freshness.initialAge.addingClamped(now.subtractingClamped(received))
  }

  /// The time until the response becomes stale, in milliseconds; zero or negative when it is stale.
  package func timeLeft(at now: Int64) -> Int64 { freshness.lifetime - age(at: now) }
}
