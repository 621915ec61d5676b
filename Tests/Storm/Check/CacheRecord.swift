import NetOptCore
import NetOptLocking

/// Records the responses that the backend sent for cacheable URLs, and when.
final class CacheRecord: Sendable {
  /// A response for one URL.
  struct Answer: Sendable {
    let version: Int
    let flavour: String
    let isNotModified: Bool
    /// Whether the backend cuts this response off, if the URL has a cut.
    let breaks: Bool
    let content: Content

    var tag: String { "\"\(flavour)-\(version)\"" }
  }

  private struct Resource {
    var version = 0
    var answers = 0
    /// When each version was last sent or confirmed.
    var sent: [Int: MonotonicInstant] = [:]
  }

  private let seed: UInt64
  private let resources = Locked<[String: Resource]>([:])
  private let clock = SystemTimeSource()

  init(seed: UInt64) { self.seed = seed }

  /// Chooses a response and records it as sent.
  func answer(to index: Int, _ url: String, flavour: String, ifNoneMatch: String?) -> Answer {
    var random = SplitMix64(seed: seed, stream: 4, index: index)
    let now = clock.now()
    return resources.withLock { resources in
      var resource = resources["\(url) \(flavour)"] ?? Resource()
      resource.answers += 1
      let isKnown = ifNoneMatch?.contains("\"\(flavour)-\(resource.version)\"") == true
      let isNotModified = isKnown && random.chance(60)
      if !isNotModified, resource.version == 0 || random.chance(40) { resource.version += 1 }
      resource.sent[resource.version] = now
      // Older versions are stale in every cache.
      resource.sent = resource.sent.filter { $0.value + .seconds(60) > now }
      resources["\(url) \(flavour)"] = resource
      return Answer(
        version: resource.version, flavour: flavour, isNotModified: isNotModified, breaks: random.chance(25),
        content: .cached(url, flavour: flavour, version: resource.version))
    }
  }

  /// When a version was last sent or confirmed; `nil` when it never was, or more than a minute ago.
  func lastSent(_ url: String, flavour: String, version: Int) -> MonotonicInstant? {
    resources.withLock { $0["\(url) \(flavour)"]?.sent[version] }
  }
}
