package import NetOptCore

/// What a stored response says of its use, read once: a hit looks at it and parses nothing.
package struct ResponseTerms: Sendable {
  /// Its `Cache-Control`.
  package let control: CacheControl
  /// For how long it is fresh.
  package let freshness: Freshness
  /// What it can be validated with.
  package let validators: Validators
  /// When its head came: milliseconds since 1970.
  package let received: Int64

  /// Reads a response's fields.
  ///
  /// - Parameters:
  ///   - requested: when its request was sent: milliseconds since 1970.
  ///   - received: when its head came.
  package init(status: Int, fields: HeaderFields, requested: Int64, received: Int64) {
    control = CacheControl(fields)
    freshness = Freshness(
      status: status, fields: fields, control: control, requested: requested, received: received)
    validators = Validators(fields)
    self.received = received
  }

  /// How old it is (RFC 9111, section 4.2.3), in milliseconds. When the clock was set back to a moment before the response came, its age is not known,
  /// and it counts as older than anything. Otherwise it would stay fresh until the clock has caught up.
  package func age(at now: Int64) -> Int64 {
    guard now >= received else { return .max }
    return freshness.initialAge.addingClamped(now.subtractingClamped(received))
  }

  /// For how long it stays fresh, in milliseconds; negative when it is stale.
  package func timeLeft(at now: Int64) -> Int64 { freshness.lifetime - age(at: now) }
}
