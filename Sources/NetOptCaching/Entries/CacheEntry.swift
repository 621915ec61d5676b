package import NetOptCore

/// A stored response: the response as it came, before any model, with its content decoded. It does not change, so that a hit
/// shares it with everybody who has it, body included; what changes, as after a 304, is a new entry.
package final class CacheEntry: Sendable {
  /// What it is found by.
  package let key: CacheKey
  /// The values that the request had in the fields that the response's `Vary` names, in the order of the names; empty
  /// without `Vary`. One key has an entry for each (RFC 9111, section 4.1).
  package let selectors: [Selector]
  /// The status.
  package let status: Int
  /// The fields that are stored: without those of the connection; when the content was decoded, without `Content-Encoding`
  /// and `Content-Length` too.
  package let fields: HeaderFields
  /// The decoded body.
  package let body: [UInt8]
  /// When its request was sent: milliseconds since 1970.
  package let requested: Int64
  /// When its head came: milliseconds since 1970.
  package let received: Int64
  /// Until when it is fresh by its own declaration, in `api` mode and as a negative answer: milliseconds since 1970. `nil`
  /// leaves it to RFC 9111.
  package let declaredExpiry: Int64?
  /// The version of the resource, in versioned mode.
  package let resourceVersion: Int64?
  /// How long fetching it took, in microseconds: what it costs to lose it.
  package let fetchMicroseconds: Int64
  /// What the fields say of its use.
  package let terms: ResponseTerms
  /// How many bytes of memory the entry keeps: body, fields, texts, and what the allocator and the objects around them
  /// add. Not less than it is.
  package let weight: Int

  /// A field that `Vary` names, with its value in the request.
  package struct Selector: Hashable, Sendable {
    /// The name in small letters.
    package let name: String
    /// The value, its white space evened out; `nil` when the request had no such field.
    package let value: String?

    /// Makes one.
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

  /// Whether some request selects both this entry and one with these selectors: they have no field with different values. A store keeps the later
  /// one only. If it kept both and lost the later one, a request would get the older one.
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
  /// The same with another key.
  package func replacing(key: CacheKey) -> CacheEntry {
    CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body, requested: requested,
      received: received, declaredExpiry: declaredExpiry,
      resourceVersion: resourceVersion, fetchMicroseconds: fetchMicroseconds)
  }
}
