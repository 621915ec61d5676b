package import NetOptCore

/// How long a response is fresh (RFC 9111, section 4.2). It is computed once, when the entry is made.
/// Durations are in milliseconds.
package struct Freshness: Hashable, Sendable {
  /// The freshness lifetime: the age at which the response becomes stale. The age counts from the time when
  /// the origin generated the response.
  package var lifetime: Int64
  /// The rule that gives `lifetime`.
  package var rule: CacheRule
  /// Whether the response states its freshness with `max-age` or `Expires`.
  package var isExplicit: Bool
  /// The age of the response when it was received, which RFC 9111 calls the corrected initial age (section
  /// 4.2.3).
  package var initialAge: Int64

  /// The statuses of responses that may be stored without explicit freshness (RFC 9110, section 15.1). The
  /// RFC also lists 206, but this cache does not store partial content.
  package static let heuristicStatuses: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

  /// Computes the freshness of a response.
  ///
  /// - Parameters:
  ///   - requested: when the request was sent, in milliseconds since 1970.
  ///   - received: when the response head was received, in milliseconds since 1970.
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
      // An invalid date, such as "0", counts as a date in the past (section 5.3).
      if fields.values(of: "Expires").count == 1, let expires = Self.date("Expires", fields, received) {
        (lifetime, rule) = (max(expires.subtractingClamped(date ?? received), 0), .freshByExpires)
      } else {
        rule = .freshnessInvalid
      }
    } else if Self.heuristicStatuses.contains(status) || control.isPublicOrPrivate,
      let modified = Self.date("Last-Modified", fields, received)
    {
      // A `Date` in the future counts as the present. Otherwise the time since `Last-Modified` would seem
      // longer, and the response would be fresh for longer.
      let age = min(date ?? received, received).subtractingClamped(modified)
      (lifetime, rule) = (max(age, 0) / 10, .freshByHeuristic)
    }
  }

  /// The date in a field, in milliseconds since 1970; `nil` when the field is missing or not a date.
  ///
  /// - Parameter present: the current time in milliseconds since 1970. It tells the century of a year with
  ///   two digits.
  private static func date(_ name: String, _ fields: HeaderFields, _ present: Int64) -> Int64? {
    fields[name].flatMap { CivilTime(http: $0, near: present / 1000) }.map { $0.seconds * 1000 }
  }

  /// Computes the corrected initial age. It is the greater of two ages: the time from `Date` until
  /// `received`, and the age in the field `Age` plus the time from `requested` until `received`.
  private static func initialAge(
    _ fields: HeaderFields, _ date: Int64?, requested: Int64, received: Int64
  ) -> Int64 {
    // Rounds down to whole seconds, because `Date` has no fractions of a second. Otherwise a response that
    // arrives at once would seem up to a second old.
    let apparent = max(date.map { received.subtractingClamped($0) / 1000 * 1000 } ?? 0, 0)
    let delay = max(received.subtractingClamped(requested), 0)
    return max(apparent, statedAge(fields).addingClamped(delay))
  }

  /// The number in the field `Age`, in milliseconds. If the field has a list, its first member counts. 0 when
  /// the field is missing or has no number (section 5.1).
  private static func statedAge(_ fields: HeaderFields) -> Int64 {
    guard let first = FieldText.members(fields.values(of: "Age"))?.first else { return 0 }
    return DeltaSeconds.milliseconds(first) ?? 0
  }
}
