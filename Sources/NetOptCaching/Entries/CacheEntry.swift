package import NetOptCore

/// A stored response, as it was received, with its content decoded and before any conversion to a model. An
/// entry is immutable, so all users of a hit share it, including its body. A change, such as after a 304,
/// makes a new entry.
package final class CacheEntry: Sendable {
  /// The key of the entry.
  package let key: CacheKey
  /// The request's values of the fields that the response's `Vary` names, sorted by name; empty without
  /// `Vary`. A key has one entry for each set of values (RFC 9111, section 4.1).
  package let selectors: [Selector]
  /// The status.
  package let status: Int
  /// The stored header fields, without those of the connection. If the content was decoded,
  /// `Content-Encoding` and `Content-Length` are missing too.
  package let fields: HeaderFields
  /// The decoded body.
  package let body: [UInt8]
  /// When the request was sent, in milliseconds since 1970.
  package let requested: Int64
  /// When the response head was received, in milliseconds since 1970.
  package let received: Int64
  /// The declared expiry in `api` mode, also for negative responses, in milliseconds since 1970. `nil` means
  /// that RFC 9111 decides.
  package let declaredExpiry: Int64?
  /// The version of the resource, in versioned mode.
  package let resourceVersion: Int64?
  /// The duration of the fetch in microseconds. It is the cost of losing the entry.
  package let fetchMicroseconds: Int64
  /// The caching terms in the header fields.
  package let terms: ResponseTerms
  /// The bytes of memory that the entry takes: body, fields, strings, object headers and what the allocator
  /// adds. The value is never too small.
  package let weight: Int

  /// A field that `Vary` names, with its value in the request.
  package struct Selector: Hashable, Sendable {
    /// The name in lowercase.
    package let name: String
    /// The value in the form that `Vary` compares; `nil` when the request had no such field.
    package let value: String?

    /// Makes a selector.
    package init(name: String, value: String?) {
      self.name = name
      self.value = value
    }

    /// Whether both have the same bytes.
    package static func == (one: Selector, other: Selector) -> Bool {
      guard one.name.hasSameBytes(as: other.name) else { return false }
      guard let value = one.value, let others = other.value else {
        return one.value == nil && other.value == nil
      }
      return value.hasSameBytes(as: others)
    }
  }

  /// Whether some request could match both this entry and an entry with these selectors, which is so when no
  /// field has different values. A store keeps only the later of two such entries. If it kept both and lost
  /// the later one, a request would get the older one.
  package func overlaps(_ others: [Selector]) -> Bool {
    selectors.allSatisfy { mine in others.allSatisfy { $0.name != mine.name || $0 == mine } }
  }

  /// Makes an entry.
  package init(
    key: CacheKey, selectors: [Selector] = [], status: Int, fields: HeaderFields, body: [UInt8],
    requested: Int64, received: Int64, declaredExpiry: Int64? = nil, resourceVersion: Int64? = nil,
    fetchMicroseconds: Int64
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
      resourceVersion: resourceVersion, fetchMicroseconds: fetchMicroseconds)
  }
}
