/// What decided about a response in a cache: a rule, and where it is written.
package struct CacheRule: Hashable, Sendable, CustomStringConvertible {
  /// The rule in a few words.
  package let text: String
  /// Its section, as `RFC 9111, section 4.2`; a name of netopt's own rules otherwise.
  package let section: String

  /// Makes a rule.
  package init(_ text: String, _ section: String) {
    self.text = text
    self.section = section
  }

  /// `is fresh (RFC 9111, section 4.2)`.
  package var description: String { "\(text) (\(section))" }
}

/// What the cache had to do with a response. A value that is one reference, or none while no cache is used.
public struct CacheStatus: Hashable, Sendable {
  /// How a response came about.
  public enum Outcome: String, Hashable, Sendable {
    /// No cache was asked.
    case off
    /// It came from the origin.
    case miss
    /// It was stored, and was used without asking the origin.
    case hit
    /// The same, although its time is over.
    case stale
    /// It was stored, and the origin said that it still holds.
    case revalidated
  }

  /// Why a request went to the origin: the values of `fwd` in RFC 9211, section 2.2.
  package enum Forward: String, Hashable, Sendable {
    /// The cache is not used for this request.
    case bypass
    /// What the method does has to reach the origin.
    case method
    /// Nothing is stored for the URL.
    case uriMiss = "uri-miss"
    /// What is stored for the URL is for other values of the fields that `Vary` names.
    case varyMiss = "vary-miss"
    /// Nothing that is stored answers the request.
    case miss
    /// The request asks for an answer of the origin.
    case request
    /// What is stored is stale.
    case stale
    /// What is stored does not have the range that is asked for.
    case partial
  }

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
      // The largest integers of structured fields (RFC 8941, section 3.3.1).
      self.timeToLive = timeToLive.map { min(max($0, -999_999_999_999_999), 999_999_999_999_999) }
      self.storing = storing
      self.isStored = isStored
      self.isCollapsed = isCollapsed
    }
  }

  private static let offRule = CacheRule("no cache is used", "netopt")

  private var storage: Storage?

  /// No cache was asked.
  public static let off = CacheStatus()

  private init() {}

  /// Makes a status.
  ///
  /// - Parameters:
  ///   - outcome: how the response came about.
  ///   - rule: what decided that.
  ///   - forward: why the request went to the origin; `nil` when it did not.
  ///   - forwardedStatus: the status of the origin's answer.
  ///   - timeToLive: how many seconds the response stays fresh; negative when it is stale.
  ///   - storing: what decided whether the origin's answer is stored.
  ///   - isStored: whether it is.
  ///   - isCollapsed: whether the request waited for the answer to another one.
  package init(
    _ outcome: Outcome, by rule: CacheRule, forward: Forward? = nil, forwardedStatus: Int? = nil,
    timeToLive: Int64? = nil, storing: CacheRule? = nil, isStored: Bool = false, isCollapsed: Bool = false
  ) {
    storage = Storage(
      outcome, rule, forward, forwardedStatus, timeToLive, storing, isStored, isCollapsed)
  }

  /// How the response came about.
  public var outcome: Outcome { storage?.outcome ?? .off }
  /// What decided that, and where it is written: `is fresh (RFC 9111, section 4.2)`.
  public var reason: String { rule.description }
  /// What decided that.
  package var rule: CacheRule { storage?.rule ?? Self.offRule }
  /// The status of the origin's answer; `nil` when there was none.
  public var forwardedStatus: Int? { storage?.forwardedStatus }
  /// How many seconds the response stays fresh, negative when it is stale; `nil` when that is not known.
  public var timeToLive: Int64? { storage?.timeToLive }
  /// What decided whether the origin's answer is stored; `nil` when there was none.
  package var storing: CacheRule? { storage?.storing }
  /// Whether the origin's answer is stored when its end is read.
  public var isStored: Bool { storage?.isStored ?? false }
  /// Whether the request waited for the answer to another one.
  public var isCollapsed: Bool { storage?.isCollapsed ?? false }
  /// Whether the body is one that was stored.
  public var isFromCache: Bool { outcome == .hit || outcome == .stale || outcome == .revalidated }

  /// The member that RFC 9211 (`Cache-Status`) has for this cache; `nil` when no cache was asked.
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

  /// Whether two statuses say the same.
  public static func == (a: CacheStatus, b: CacheStatus) -> Bool {
    a.storage === b.storage
      || a.outcome == b.outcome && a.rule == b.rule && a.text == b.text && a.storing == b.storing
  }

  /// Hashes the outcome.
  public func hash(into hasher: inout Hasher) { hasher.combine(outcome) }
}
