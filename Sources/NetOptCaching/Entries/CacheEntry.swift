package import NetOptCore

/// A stored response, with its whole body in memory.
///
/// An entry is immutable, so all requests that it answers share the entry and its body. When a 304 changes
/// the stored fields, a new entry replaces the old one.
package final class CacheEntry: Sendable {
  /// The key of the entry.
  package let key: CacheKey
  /// The request fields that the response's `Vary` names, with their values in the request that fetched the
  /// response, sorted by name; empty for a response without `Vary`. A key has one entry for each set of
  /// values (RFC 9111, section 4.1).
  package let selectors: [Selector]
  /// The status of the response.
  package let status: Int
  /// The header fields that `StoredFields` keeps: those of the response, except those of the connection. If
  /// the transfer decoded the content, `Content-Encoding` and `Content-Length` are missing too.
  package let fields: HeaderFields
  /// The body. If `fields` have `Content-Encoding`, the body is still encoded. Otherwise it is decoded, or
  /// the server did not encode it.
  package let body: [UInt8]
  /// When the request was sent, in milliseconds since 1970 by the system clock.
  package let requested: Int64
  /// When the response head was received, in milliseconds since 1970 by the system clock.
  package let received: Int64
  /// The end of the time to live that the caller declared in `api` mode, in milliseconds since 1970 by the
  /// system clock. `nil` for an entry of `http` mode, for which RFC 9111 decides whether it is fresh, and for
  /// an entry of `versioned` mode, for which its version decides.
  package let declaredExpiry: Int64?
  /// The version of the resource that the request named in `versioned` mode, or that a seed pack (resources
  /// that ship with the service) states; otherwise `nil`.
  package let resourceVersion: Int64?
  /// The number by which a removal finds the response (`ResourceHash`), if the key has the declared name of an
  /// API or lacks the version; `nil` if the key has the whole URL.
  package let resource: Int64?
  /// The time from the sending of the request until the body was complete, in microseconds. The disk tier
  /// prefers to keep entries that took long to fetch.
  package let fetchMicroseconds: Int64
  /// What `fields` say about caching, parsed when the entry is made.
  package let terms: ResponseTerms
  /// The estimated memory that the entry takes, in bytes: body, fields, strings, object headers and the
  /// overhead of the allocator. The estimate is never too small.
  package let weight: Int

  /// A request field that `Vary` names, with its value in the request.
  package struct Selector: Hashable, Sendable {
    /// The name in lowercase.
    package let name: String
    /// The value in the form that `Vary` compares, which may be a digest; `nil` when the request had no such
    /// field.
    package let value: String?

    /// Makes a selector.
    package init(name: String, value: String?) {
      self.name = name
      self.value = value
    }

    /// Whether names and values have the same bytes. Two strings that are equal in Unicode may have different
    /// bytes.
    package static func == (one: Selector, other: Selector) -> Bool {
      guard one.name.hasSameBytes(as: other.name) else { return false }
      guard let value = one.value, let others = other.value else {
        return one.value == nil && other.value == nil
      }
      return value.hasSameBytes(as: others)
    }
  }

  /// Whether one request could match both this entry and an entry with the given selectors. This is so unless
  /// a field occurs in both with different values.
  ///
  /// A store keeps only the later one of two entries that overlap. If it kept both and evicted the later one,
  /// a request would get the older one.
  package func overlaps(_ others: [Selector]) -> Bool {
    selectors.allSatisfy { mine in others.allSatisfy { $0.name != mine.name || $0 == mine } }
  }

  /// Makes an entry. The parameters are described at the properties.
  package init(
    key: CacheKey, selectors: [Selector] = [], status: Int, fields: HeaderFields, body: [UInt8],
    requested: Int64, received: Int64, declaredExpiry: Int64? = nil, resourceVersion: Int64? = nil,
    resource: Int64? = nil, fetchMicroseconds: Int64
  ) {
    self.key = key
    self.selectors = selectors
    self.status = status
    self.fields = fields.fitted
    self.body = body
    self.requested = requested
    self.received = received
    self.declaredExpiry = declaredExpiry
    self.resourceVersion = resourceVersion
    self.resource = resource
    self.fetchMicroseconds = fetchMicroseconds
    terms = ResponseTerms(status: status, fields: fields, requested: requested, received: received)
    weight = Self.weight(key, selectors, self.fields, body, terms)
  }
}

extension CacheEntry {
  /// A copy of the entry with another key.
  package func replacing(key: CacheKey) -> CacheEntry {
    CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body, requested: requested,
      received: received, declaredExpiry: declaredExpiry,
      resourceVersion: resourceVersion, resource: resource, fetchMicroseconds: fetchMicroseconds)
  }
}
