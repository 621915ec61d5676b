import NetOptCaching
import NetOptCore
import NetOptCrypto

/// One call for which the client uses the cache: its request, its cache key, and the rules that apply.
struct CacheCall: Sendable {
  /// The rules that decide how the call uses the cache.
  enum Rules: Sendable {
    /// The rules of RFC 9111, in `http` mode.
    case http(CachePolicy)
    /// The rules that the caller declares for an API, in `api` mode.
    case declared(DeclaredPolicy)
    /// The rules for URLs with a version, in versioned mode. `requestedVersion` is the version in the URL.
    case versioned(VersionedPolicy, requestedVersion: Int64)
    /// The cache neither answers the request nor stores its response. The rule says why. In versioned mode,
    /// the method is not GET or HEAD, or the URL has no version. In `api` mode, the declaration does not
    /// cover the request, or its body is a stream. Or the request is a GET or HEAD with a body, and the key
    /// cannot include the body.
    case none(CacheRule)
  }

  /// The request as the caller made it.
  let request: NetOptRequest
  /// The parts of the request that matter to the cache.
  let cacheRequest: CacheRequest
  /// The key under which the cache stores responses to the request. It includes the partition.
  let key: CacheKey
  /// The rules that the mode and the request lead to.
  let rules: Rules
  /// The cache of the client.
  let cache: ResponseCache
  /// The value of `ResponseCache.settingsChanges` for which `key` was computed.
  let settingsChanges: UInt32
  /// The value of `ResourceChanges.removalCount` when the call began.
  let removalCount: UInt64

  /// Prepares a call. Returns `nil` when the cache is off for the request, and when no key can be computed.
  init?(_ request: NetOptRequest, _ cache: ResponseCache) {
    let options = request.options.cache ?? cache.options
    guard options.mode != .off else { return nil }
    let cacheRequest = CacheRequest(request, userAgent: cache.userAgent)
    self.request = request
    self.cacheRequest = cacheRequest
    self.cache = cache
    settingsChanges = cache.settingsChanges
    removalCount = cache.changes.removalCount
    do {
      let partition = try Self.partition(of: cacheRequest, request, cache)
      (key, rules) = try Self.key(options.mode, request, cacheRequest, cache.policy, partition)
    } catch {
      // Without MD5 there is no key, so the call skips the cache.
      return nil
    }
  }

  /// Computes the partition of a request: the part of the cache for callers that may share responses.
  ///
  /// - Parameter isAnonymous: whether to compute the partition of the same caller without credentials.
  private static func partition(
    of cacheRequest: CacheRequest, _ request: NetOptRequest, _ cache: ResponseCache, isAnonymous: Bool = false
  ) throws(CryptoError) -> String {
    try RequestKey.partition(
      (request.options.cache ?? cache.options).partition, cacheRequest,
      credentialFields: cache.credentialFields,
      isVerified: request.options.verification == .full, settingsDigest: cache.settingsDigest,
      signedBy: cache.signer(for: request.url.origin.host),
      proxyUser: cache.proxies.credentials(for: request.url.origin), isAnonymous: isAnonymous)
  }

  /// The partitions in which a change by this call invalidates responses: the caller's partition, and the
  /// partition of the same caller without credentials.
  var partitions: Set<String> {
    let anonymous = try? Self.partition(of: cacheRequest, request, cache, isAnonymous: true)
    return Set([key.partition, anonymous].compactMap(\.self))
  }

  /// Computes the key of a request, and the rules that the mode and the request lead to.
  private static func key(
    _ mode: CacheOptions.Mode, _ request: NetOptRequest, _ cacheRequest: CacheRequest, _ policy: CachePolicy,
    _ partition: String
  ) throws -> (CacheKey, Rules) {
    let isRead = request.method == .get || request.method == .head
    if isRead, request.body.bytesInMemory?.isEmpty != true {
      switch mode {
      case .api(let declaration) where declaration.name != nil: break
      // PUT and DELETE invalidate all stored responses of a URL, but a response stored under the digest of a
      // request body cannot be found by the URL.
      case .api: return (try RequestKey.url(request.url, partition: partition), .none(.unnamedBody))
      case .http, .versioned, .off:
        return (try RequestKey.url(request.url, partition: partition), .none(.requestBody))
      }
    }
    switch mode {
    case .api(let declaration) where isRead || request.method == .post && declaration.name != nil:
      guard let body = request.body.bytesInMemory else {
        return (try RequestKey.url(request.url, partition: partition), .none(.notDeclared))
      }
      let key = try RequestKey.api(
        declaration.name, cacheRequest, query: request.url.query.map(String.init), body: body,
        partition: partition)
      return (key, .declared(DeclaredPolicy(declaration)))
    case .versioned(let versions) where isRead:
      let policy = VersionedPolicy(versions)
      guard let (version, query) = policy.version(of: request.url) else {
        return (try RequestKey.url(request.url, partition: partition), .none(.versionMissing))
      }
      let key = try RequestKey.api(versions.name, cacheRequest, query: query, body: [], partition: partition)
      return (key, .versioned(policy, requestedVersion: version))
    case .api, .versioned: return (try RequestKey.url(request.url, partition: partition), .none(.notDeclared))
    case .http, .off: return (try RequestKey.url(request.url, partition: partition), .http(policy))
    }
  }

  // MARK: Decisions

  /// Decides how to answer the request.
  ///
  /// - Parameter entries: the stored responses of the call's key.
  func decide(_ entries: [CacheEntry]) -> CacheDecision {
    decideByRules(entries).applyingOnlyIfCached(of: cacheRequest)
  }

  /// The decision of the rules, without `only-if-cached`.
  private func decideByRules(_ entries: [CacheEntry]) -> CacheDecision {
    switch rules {
    case .http(let policy): return policy.decide(cacheRequest, applicableEntries(entries), at: cache.now())
    case .declared(let policy): return policy.decide(cacheRequest, entries, at: cache.now())
    case .versioned(let policy, let version):
      return policy.decide(cacheRequest, requestedVersion: version, entries)
    case .none(let rule): return .bypass(rule)
    }
  }

  /// The entries that the rules may use. The rules of RFC 9111 ignore entries that were stored in another
  /// mode, with a declared expiry or a version: the caller decides how long those are fresh, and the server
  /// does not.
  func applicableEntries(_ entries: [CacheEntry]) -> [CacheEntry] {
    guard case .http = rules else { return entries }
    return entries.filter { $0.declaredExpiry == nil && $0.resourceVersion == nil }
  }

  /// The stored response to serve instead of a 5xx response, or instead of an error when the origin could not
  /// be reached. `nil` when the rules forbid it, and always outside `http` mode.
  ///
  /// - Parameters:
  ///   - status: the status of the 5xx response; `nil` when there was no response.
  ///   - entry: the stored response.
  func afterFailure(_ status: Int?, _ entry: CacheEntry) -> CachedAnswer? {
    guard case .http(let policy) = rules else { return nil }
    return policy.afterFailure(status, cacheRequest, entry, at: cache.now())
  }

  /// Whether the rules allow the cache to store a response.
  func storing(_ status: Int, _ fields: HeaderFields, _ terms: ResponseTerms) -> Storing {
    switch rules {
    case .http: Storing(cacheRequest, status: status, fields, terms)
    case .declared(let policy): policy.storing(cacheRequest, status: status, fields, terms.control)
    case .versioned(let policy, _): policy.storing(cacheRequest, status: status, fields, terms.control)
    case .none(let rule): .refused(rule)
    }
  }

  /// When a response becomes stale by the caller's declaration, in milliseconds since 1970. `nil` outside
  /// `api` mode, and when the declaration does not cover the status.
  ///
  /// - Parameter received: when the head of the response came, in milliseconds since 1970.
  func declaredExpiry(_ status: Int, received: Int64) -> Int64? {
    guard case .declared(let policy) = rules else { return nil }
    return policy.expiry(status: status, received: received, jitterShare: Double.random(in: 0...1))
  }

  /// The version that the request asks for, which is also the version of the response; `nil` outside
  /// versioned mode.
  var version: Int64? { if case .versioned(_, let requested) = rules { requested } else { nil } }

  /// The number by which a removal finds the response of the call (`CacheEntry.resource`). `nil` when `key`
  /// has the whole URL.
  var resource: Int64? {
    let mode = (request.options.cache ?? cache.options).mode
    switch (rules, mode) {
    case (.declared, .api(let declaration)) where declaration.name != nil:
      return ResourceHash.of(request.url, isNamed: true)
    case (.versioned, .versioned(let versions)):
      return ResourceHash.of(
        request.url, isNamed: versions.name != nil, version: versions.parameter)
    default: return nil
    }
  }

  /// Whether the call may wait for the fetch of another call, and other calls for its fetch. Only a GET may,
  /// and in `api` mode every request except HEAD. A request may not if its own fields demand something of the
  /// response, such as a range or a maximum age.
  var isShared: Bool {
    let isPlain =
      !cacheRequest.conditions.isForCache && cacheRequest.range == nil && !cacheRequest.control.noCache
      && cacheRequest.control.maxAge == nil
    if case .declared = rules { return isPlain && request.method != .head }
    return isPlain && request.method == .get
  }

  // MARK: Responses

  /// Answers with a stored response, and refreshes it in the background if `service` says so.
  ///
  /// - Parameters:
  ///   - isCollapsed: whether the call waited for the fetch of another call.
  ///   - next: the rest of the chain, which sends the refresh.
  func serve(
    _ service: CachedAnswer, isCollapsed: Bool = false, refreshingWith next: InterceptorChain
  ) -> NetOptResponse {
    if service.refreshes { refresh(service.entry, next) }
    return response(service, isCollapsed: isCollapsed)
  }
}

extension RequestBody {
  /// The bytes of the body; empty when there is no body; `nil` when the body is a stream.
  var bytesInMemory: [UInt8]? {
    switch source {
    case .none: []
    case .bytes(let bytes): bytes
    case .stream: nil
    }
  }
}
