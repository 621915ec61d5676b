/// A rule by which the cache decided, with the document that defines the rule.
package struct CacheRule: Hashable, Sendable, CustomStringConvertible {
  /// The rule in a few words.
  package let text: String
  /// The section that defines the rule, such as `RFC 9111, section 4.2`. A name, such as `netopt`, for a rule
  /// that no RFC defines.
  package let section: String

  /// Creates a rule.
  package init(_ text: String, _ section: String) {
    self.text = text
    self.section = section
  }

  /// The text and section: `is fresh (RFC 9111, section 4.2)`.
  package var description: String { "\(text) (\(section))" }
}

/// What the cache did for a request: whether the response comes from the cache, why, and whether the cache
/// stores it. The value has the size of one reference, which is `nil` without a cache.
public struct CacheStatus: Hashable, Sendable {
  /// Where a response came from.
  public enum Outcome: String, Hashable, Sendable {
    /// No cache was used.
    case off
    /// The response came from the origin. Or the cache had no response to serve and made a 504 response: the
    /// request asked for a stored response only, or the origin could not be reached.
    case miss
    /// The cache served a fresh stored response without contacting the origin.
    case hit
    /// The cache served a stale stored response that the origin did not confirm.
    case stale
    /// The cache served a stored response after the origin confirmed it (revalidation).
    case revalidated
  }

  /// Why a request went to the origin. The raw values are those of the parameter `fwd` (RFC 9211, section
  /// 2.2).
  package enum Forward: String, Hashable, Sendable {
    /// The cache does not apply to this request.
    case bypass
    /// The cache serves no requests with this method.
    case method
    /// No response is stored for the URL.
    case uriMiss = "uri-miss"
    /// The responses stored for the URL have other values in the request fields that `Vary` names.
    case varyMiss = "vary-miss"
    /// No stored response can be used, for a reason that no other case names.
    case miss
    /// The request demands a response from the origin.
    case request
    /// The stored response is stale.
    case stale
    /// The stored response does not contain the requested range.
    case partial
  }

  /// The properties of a status, in one object. The parameters of the initializer of `CacheStatus` describe
  /// them.
  private final class Storage: Sendable {
    let outcome: Outcome
    let rule: CacheRule
    let forward: Forward?
    let forwardedStatus: Int?
    let timeToLive: Int64?
    let storing: CacheRule?
    let isStored: Bool
    let isCollapsed: Bool

    init(
      _ outcome: Outcome, _ rule: CacheRule, _ forward: Forward?, _ forwardedStatus: Int?,
      _ timeToLive: Int64?,
      _ storing: CacheRule?, _ isStored: Bool, _ isCollapsed: Bool
    ) {
      self.outcome = outcome
      self.rule = rule
      self.forward = forward
      self.forwardedStatus = forwardedStatus
      // Integers in structured fields have at most 15 digits (RFC 9651, section 3.3.1).
      self.timeToLive = timeToLive.map { min(max($0, -999_999_999_999_999), 999_999_999_999_999) }
      self.storing = storing
      self.isStored = isStored
      self.isCollapsed = isCollapsed
    }
  }

  /// The rule of the status `off`.
  private static let offRule = CacheRule("no cache is used", "netopt")

  /// The properties; `nil` for the status `off`.
  private var storage: Storage?

  /// The status of a call that uses no cache.
  public static let off = CacheStatus()

  private init() {}

  /// Creates a status.
  ///
  /// - Parameters:
  ///   - outcome: where the response came from.
  ///   - rule: the rule that decided the outcome.
  ///   - forward: why the request went to the origin; `nil` if it did not.
  ///   - forwardedStatus: the status code of the origin's response; `nil` if there was none.
  ///   - timeToLive: the seconds for which the response stays fresh; negative if stale, `nil` if unknown.
  ///   - storing: the rule that decided whether the origin's response is stored.
  ///   - isStored: whether the origin's response is stored.
  ///   - isCollapsed: whether the call got the result of another call's fetch (single flight).
  package init(
    _ outcome: Outcome, by rule: CacheRule, forward: Forward? = nil, forwardedStatus: Int? = nil,
    timeToLive: Int64? = nil, storing: CacheRule? = nil, isStored: Bool = false, isCollapsed: Bool = false
  ) {
    storage = Storage(
      outcome, rule, forward, forwardedStatus, timeToLive, storing, isStored, isCollapsed)
  }

  /// Where the response came from.
  public var outcome: Outcome { storage?.outcome ?? .off }
  /// The rule that decided the outcome, with its source: `is fresh (RFC 9111, section 4.2)`.
  public var reason: String { rule.description }
  /// The rule that decided the outcome.
  package var rule: CacheRule { storage?.rule ?? Self.offRule }
  /// The status code of the origin's response, such as 304; `nil` if there was none. It differs from the
  /// status of the call's response if the cache served a stored response.
  public var forwardedStatus: Int? { storage?.forwardedStatus }
  /// How long the response stays fresh, in seconds from the time of this call. Negative if the response is
  /// stale. `nil` if the response neither comes from the cache nor is stored, and in the mode
  /// `CacheOptions.Mode.versioned`, where time does not make a response stale.
  public var timeToLive: Int64? { storage?.timeToLive }
  /// The rule that decided whether the origin's response is stored. `nil` if the origin sent no response to
  /// this call, or if the cache served a stored response instead of the origin's response.
  package var storing: CacheRule? { storage?.storing }
  /// Whether the cache stores the origin's response, which it does when the body has been read to its end.
  /// After a 304: whether the cache keeps the stored response that the 304 updates. False if the cache served
  /// a stored response that the origin did not confirm.
  public var isStored: Bool { storage?.isStored ?? false }
  /// Whether the call got the result of another call's fetch (single flight). False if the call waited for a
  /// fetch and then sent its own request.
  public var isCollapsed: Bool { storage?.isCollapsed ?? false }
  /// Whether the body of the response came from the cache: a hit, a stale or a revalidated response.
  public var isFromCache: Bool { outcome == .hit || outcome == .stale || outcome == .revalidated }

  /// The member of the `Cache-Status` field for this cache (RFC 9211), or `nil` if no cache was used.
  public var text: String? {
    guard let storage else { return nil }
    var text = "netopt"
    if storage.outcome == .hit || storage.outcome == .stale, storage.forward == nil { text += "; hit" }
    if let forward = storage.forward { text += "; fwd=\(forward.rawValue)" }
    if let status = storage.forwardedStatus { text += "; fwd-status=\(status)" }
    if let seconds = storage.timeToLive { text += "; ttl=\(seconds)" }
    if storage.isStored { text += "; stored" }
    if storage.isCollapsed { text += "; collapsed" }
    return text
  }

  /// Whether both statuses are equal.
  public static func == (a: CacheStatus, b: CacheStatus) -> Bool {
    a.storage === b.storage
      || a.outcome == b.outcome && a.rule == b.rule && a.text == b.text && a.storing == b.storing
  }

  /// Hashes the outcome.
  public func hash(into hasher: inout Hasher) { hasher.combine(outcome) }
}
