package import NetOptCore

/// The cache policy of `versioned` mode. In this mode a request names the version of the resource that it
/// wants, and a stored response of this version or of a later one answers it.
package struct VersionedPolicy: Sendable {
  /// The name of the query parameter with the version, and how far a served version may be behind.
  package let versions: CacheOptions.Versions

  /// Makes a policy.
  package init(_ versions: CacheOptions.Versions) { self.versions = versions }

  /// The version in a URL's query, and the query without the parameter of the version. `nil` when there is no
  /// such parameter, or when its value is not an integer.
  package func version(of url: HTTPURL) -> (version: Int64, query: String)? {
    guard let query = url.query else { return nil }
    var version: Int64?
    var rest: [Substring] = []
    for piece in query.split(separator: "&", omittingEmptySubsequences: false) {
      let name = piece.prefix { $0 != "=" }
      if name == versions.parameter {
        version = version ?? Int64(piece.dropFirst(name.count + 1))
      } else {
        rest.append(piece)
      }
    }
    return version.map { ($0, rest.joined(separator: "&")) }
  }

  /// Decides how to answer a request that names a version.
  ///
  /// - Parameter entries: the entries stored for the key, newest first.
  package func decide(
    _ request: CacheRequest, requestedVersion: Int64, _ entries: [CacheEntry]
  ) -> CacheDecision {
    if request.control.noStore { return .bypass(.requestNoStore) }
    if request.conditions.isForOrigin { return .bypass(.condition) }
    guard let entry = CachePolicy.selected(entries, for: request), let version = entry.resourceVersion,
      request.acceptsCoding(of: entry)
    else { return .origin(for: request, .uriMiss, .nothingStored) }
    if request.control.noCache { return .origin(for: request, .request, .requestNoCache) }
    guard let part = ResponsePart(of: entry, for: request) else {
      return .origin(for: request, .partial, .otherRange)
    }
    if version >= requestedVersion {
      return .serve(CachedAnswer(entry, part, .versionFresh, outcome: .hit, refreshes: false))
    }
    let (behind, overflow) = requestedVersion.subtractingReportingOverflow(version)
    if !overflow, behind < versions.threshold {
      return .serve(CachedAnswer(entry, part, .versionRefresh, outcome: .stale, refreshes: true))
    }
    return .origin(for: request, .stale, .versionBehind)
  }

  /// Decides whether to store a response.
  package func storing(
    _ request: CacheRequest, status: Int, _ fields: HeaderFields, _ control: CacheControl
  ) -> Storing {
    if let refusal = DeclaredPolicy.refusal(request, status, fields, control) { return .refused(refusal) }
    return (200...299).contains(status) ? .stored(.versioned) : .refused(.statusNotStored)
  }
}
