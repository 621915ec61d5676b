package import NetOptCore
package import NetOptCrypto

/// The stored responses that a removal concerns. It contains digests instead of texts, so it is small.
package enum CacheSelection: Hashable, Sendable {
  /// All responses.
  case everything
  /// The responses of a URL, in all partitions and variants.
  case url(URLResponses)
  /// The responses of the API with a declared name, at all origins and in all partitions and variants.
  case name(String)

  /// How to recognise the responses of a URL.
  package struct URLResponses: Hashable, Sendable {
    /// The digests of the keys that contain the URL: those of `http` mode and of `api` mode without a name.
    /// They apply to responses without `CacheEntry.resource` only. In `versioned` mode, the key of another URL
    /// has the same text: the version is not part of it.
    let digests: Set<MD5Digest>
    /// The values of `CacheEntry.resource` for the other keys.
    let resources: Set<Int64>
  }

  /// Selects the responses of a URL. The method of the request, the partition, the credentials and the fields
  /// in `Vary` do not matter. In `versioned` mode the version in the URL does not matter either.
  ///
  /// - Throws: `CryptoError` when this machine's libcrypto has no MD5. Then there are no keys either.
  package init(url: HTTPURL) throws(CryptoError) {
    let keys = [
      try RequestKey.url(url, partition: ""), try RequestKey.canonical(url, partition: ""),
    ]
    self = .url(URLResponses(digests: Set(keys.map(\.digest)), resources: ResourceHash.all(of: url)))
  }

  /// The approximate memory of the selection, in digests. A URL has a few, or one for each of its parameters.
  package var weight: Int {
    switch self {
    case .everything: 1
    case .url(let url): url.digests.count + url.resources.count
    case .name(let name): 1 + name.utf8.count / 16
    }
  }

  /// Whether the selection contains a response.
  ///
  /// - Parameters:
  ///   - key: the key of the response.
  ///   - resource: `CacheEntry.resource` of the response.
  package func contains(_ key: CacheKey, _ resource: Int64?) -> Bool {
    switch self {
    case .everything: true
    case .url(let url): resource.map(url.resources.contains) ?? url.digests.contains(key.digest)
    case .name(let name):
      resource.map(ResourceHash.isNamed) ?? false && Self.hasName(name, key.text.utf8)
    }
  }

  /// Whether the selection may contain a response whose `CacheEntry.resource` is not known.
  ///
  /// - Parameter mayLackURL: whether the key may lack the URL or a part of it.
  package func mayContain(_ key: CacheKey, mayLackURL: Bool) -> Bool {
    switch self {
    case .everything: true
    case .url(let url): mayLackURL || url.digests.contains(key.digest)
    case .name(let name): Self.hasName(name, key.text.utf8)
    }
  }

  /// Whether the text of a key begins with the name of an API and the NUL after it.
  static func hasName(_ name: String, _ text: some Sequence<UInt8>) -> Bool {
    text.starts(with: Array(name.utf8) + [0])
  }
}
