package import NetOptCore

/// What a response says of its freshness, read once when it is stored (RFC 9111, section 4.2). Times are milliseconds.
package struct Freshness: Hashable, Sendable {
  /// How long it is fresh after it was generated.
  package var lifetime: Int64
  /// What that follows from.
  package var rule: CacheRule
  /// Whether the response says so itself.
  package var isExplicit: Bool
  /// How old it was when it came: the corrected initial age (section 4.2.3).
  package var initialAge: Int64

  /// Statuses that may be stored without an explicit freshness (RFC 9110, section 15.1). 206 is missing: it is not stored.
  package static let heuristicStatuses: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

  /// Works out the freshness of a response.
  ///
  /// - Parameters:
  ///   - requested: when its request was sent.
  ///   - received: when its head came.
  package init(
    status: Int, fields: HeaderFields, control: CacheControl, requested: Int64, received: Int64
  ) {
    let date = Self.date("Date", fields, received)
    initialAge = Self.initialAge(fields, date, requested: requested, received: received)
    (lifetime, rule, isExplicit) = (0, .noFreshness, false)
    if let maxAge = control.maxAge {
      (lifetime, rule, isExplicit) = (maxAge, .freshByMaxAge, true)
    } else if fields.contains(name: "Expires") {
      isExplicit = true
      // A date that cannot be read, above all "0", is one in the past (section 5.3).
      if fields.values(of: "Expires").count == 1, let expires = Self.date("Expires", fields, received) {
        (lifetime, rule) = (max(expires.subtractingClamped(date ?? received), 0), .freshByExpires)
      } else {
        rule = .freshnessInvalid
      }
    } else if Self.heuristicStatuses.contains(status) || control.isMarked,
      let modified = Self.date("Last-Modified", fields, received)
    {
      // A date in the future makes nothing older, which would be fresh for longer.
      let age = min(date ?? received, received).subtractingClamped(modified)
      (lifetime, rule) = (max(age, 0) / 10, .freshByHeuristic)
    }
  }

  private static func date(_ name: String, _ fields: HeaderFields, _ present: Int64) -> Int64? {
    fields[name].flatMap { CivilTime(http: $0, near: present / 1000) }.map { $0.seconds * 1000 }
  }

  private static func initialAge(
    _ fields: HeaderFields, _ date: Int64?, requested: Int64, received: Int64
  ) -> Int64 {
    // Whole seconds: a date has no parts of one, and what came at once is not older for that.
    let apparent = max(date.map { received.subtractingClamped($0) / 1000 * 1000 } ?? 0, 0)
    let delay = max(received.subtractingClamped(requested), 0)
    return max(apparent, statedAge(fields).addingClamped(delay))
  }

  /// `Age`: the first member, unless it is no number (section 5.1).
  private static func statedAge(_ fields: HeaderFields) -> Int64 {
    guard let first = FieldText.members(fields.values(of: "Age"))?.first else { return 0 }
    return DeltaSeconds.milliseconds(first) ?? 0
  }
}
