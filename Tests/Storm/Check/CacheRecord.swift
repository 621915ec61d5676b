import NetOptCore
import NetOptLocking

/// Chooses the backend's responses for cacheable URLs, and records which version was sent when. `Judge`
/// compares the responses that come from a cache with this record.
final class CacheRecord: Sendable {
  /// The backend's response to one request for a cacheable URL.
  struct Answer: Sendable {
    /// The version of the resource in this response: 1 for the first response, and higher after each change.
    let version: Int
    /// The value of the request's field `X-Flavour`, by which the response was chosen. `"0"` when the
    /// responses for the URL do not depend on this field.
    let flavour: String
    /// Whether the response is a 304, because the request named this version in `If-None-Match`.
    let isNotModified: Bool
    /// Whether the backend breaks the connection before the end of this response. It does so after the number
    /// of body bytes in `AnswerPlan.cut`. Without effect for a URL whose plan has no cut.
    let breaks: Bool
    /// The content of the body; its length is `AnswerPlan.size`. A 304 has no body.
    let content: Content

    /// The value of the response's `ETag` field.
    var tag: String { "\"\(flavour)-\(version)\"" }
  }

  /// The state of a URL for one flavour. Each flavour has its own versions.
  private struct Resource {
    /// The present version; 0 before the first response.
    var version = 0
    /// The number of responses so far.
    var answers = 0
    /// When each version was last sent or was confirmed by a 304. The backend notes the moment before it
    /// sends the response.
    var sent: [Int: MonotonicInstant] = [:]
  }

  /// The seed of the storm.
  private let seed: UInt64
  /// The resources, by URL and flavour with a space between them.
  private let resources = Locked<[String: Resource]>([:])
  private let clock = SystemTimeSource()

  init(seed: UInt64) { self.seed = seed }

  /// Chooses the response to a request, and records it as sent now.
  ///
  /// - Parameters:
  ///   - index: the index of the request, which decides the random choices.
  ///   - url: the authority and the target of the request.
  ///   - ifNoneMatch: the field `If-None-Match` of the request.
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
      // Forgets versions that were last sent more than a minute ago. They are stale in every cache, because
      // `max-age` is at most 3 s.
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
