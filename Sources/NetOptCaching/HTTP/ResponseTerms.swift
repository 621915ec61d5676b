package import NetOptCore

/// The caching terms of a response: what its header fields say about caching. They are parsed once, when the
/// entry is made, so that a hit parses nothing.
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

  /// The age of the response in milliseconds (RFC 9111, section 4.2.3). If `now` is before the response was
  /// received, the system clock was set back. Then the age is unknown, and the result is `Int64.max`, so that
  /// the response is stale.
  package func age(at now: Int64) -> Int64 {
    guard now >= received else { return .max }
    return freshness.initialAge.addingClamped(now.subtractingClamped(received))
  }

  /// The time until the response becomes stale, in milliseconds; zero or negative for a stale response.
  package func timeLeft(at now: Int64) -> Int64 { freshness.lifetime - age(at: now) }
}
