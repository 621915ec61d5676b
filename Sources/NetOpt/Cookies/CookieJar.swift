import NetOptCore
import NetOptLocking

/// The cookies of a client, in memory. Safe to use from any thread. Its mirror has no children, so that a
/// dump of the client does not show the cookies.
final class CookieJar: Sendable, CustomReflectable {
  /// The maximum number of cookies of a domain (RFC 6265, section 6.1).
  static let mostPerDomain = 50
  /// The maximum size of a `Cookie` field in bytes. Servers commonly accept 8 KiB of fields; with a limit, no
  /// server can make requests too large to be sent. libcurl has the same limit.
  static let longestField = 8190

  var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }

  fileprivate struct Entry {
    var cookie: Cookie
    /// When the first of the cookies that replaced each other was set.
    let created: UInt64
    /// When the cookie was last set or sent.
    var used: UInt64
  }

  fileprivate struct Domain {
    var entries: [Entry] = []
    /// How often what requests get from this domain has changed.
    var changes: UInt64 = 0
  }

  fileprivate struct State {
    var domains: [String: Domain] = [:]
    /// Counts the events. Unlike a time, no two events have the same count.
    var events: UInt64 = 0
  }

  private let state = Locked(State())
  /// Tells this jar from others that use the same directory of a cache.
  private let id = UInt64.random(in: 0 ... .max)

  /// Returns the value of the `Cookie` field of a request (RFC 6265, section 5.4).
  ///
  /// - Parameters:
  ///   - isProtected: whether the request goes over TLS.
  ///   - now: the second since 1970.
  /// - Returns: `nil` if the request gets no cookie.
  func field(for url: HTTPURL, isProtected: Bool, at now: Int64) -> String? {
    state.withLock { state in
      state.events += 1
      var found: [Entry] = []
      for name in Self.domains(of: url.origin) {
        found += state.domains[name]?.use(for: url, isProtected: isProtected, state.events, at: now) ?? []
      }
      // Cookies of longer paths come first, then those that were set first.
      found.sort { a, b in
        (b.cookie.path.utf8.count, a.created) < (a.cookie.path.utf8.count, b.created)
      }
      var field = ""
      for text in found.map(\.cookie.text)
      where field.utf8.count + text.utf8.count + 2 <= Self.longestField {
        field += field.isEmpty ? text : "; \(text)"
      }
      return field.isEmpty ? nil : field
    }
  }

  /// Stores the cookies that a response sets (RFC 6265, section 5.3). Of more than 50, the first 50.
  ///
  /// - Parameters:
  ///   - fields: the values of the response's `Set-Cookie` fields.
  ///   - url: the URL of the request.
  ///   - isProtected: whether the response came over TLS.
  ///   - now: the second since 1970.
  func store(_ fields: [String], from url: HTTPURL, isProtected: Bool, at now: Int64) {
    let cookies = fields.prefix(Self.mostPerDomain).compactMap {
      Cookie($0, from: url, isProtected: isProtected, at: now)
    }
    guard !cookies.isEmpty else { return }
    state.withLock { state in
      for cookie in cookies { state.store(cookie, isProtected: isProtected, at: now) }
    }
  }

  /// Returns a text that stands for the cookies that a host gets now. When a cookie changes, the text becomes
  /// one that it never was before, even if the cookies are later the same again.
  func session(of url: HTTPURL, at now: Int64) -> String {
    let changes = state.withLock { state in
      Self.domains(of: url.origin).reduce(into: UInt64(0)) { sum, name in
        state.domains[name]?.removeEnded(at: now)
        sum += state.domains[name]?.changes ?? 0
      }
    }
    return "\(id).\(changes)"
  }

  /// The domains whose cookies a host may have: its own name, and the names above it.
  private static func domains(of origin: Origin) -> [String] {
    guard origin.address == nil else { return [origin.host] }
    var names = [origin.host]
    var rest = origin.host.utf8[...]
    while let dot = rest.firstIndex(of: UInt8(ascii: ".")) {
      rest = rest[rest.index(after: dot)...]
      names.append(String(Substring(rest)))
    }
    return names
  }
}

extension CookieJar.State {
  fileprivate mutating func store(_ cookie: Cookie, isProtected: Bool, at now: Int64) {
    events += 1
    if !isProtected {
      let hides = { (entry: CookieJar.Entry) in
        cookie.hides(entry.cookie) && !entry.cookie.hasEnded(at: now)
      }
      if domains.values.contains(where: { $0.entries.contains(where: hides) }) { return }
    }
    domains[cookie.domain, default: CookieJar.Domain()].store(
      cookie, events, isProtected: isProtected, at: now)
  }
}

extension CookieJar.Domain {
  /// Removes the cookies that have ended.
  fileprivate mutating func removeEnded(at now: Int64) {
    let count = entries.count
    entries.removeAll { $0.cookie.hasEnded(at: now) }
    if entries.count < count { changes += 1 }
  }

  /// Returns the cookies that a request gets, and records that they are used.
  fileprivate mutating func use(
    for url: HTTPURL, isProtected: Bool, _ events: UInt64, at now: Int64
  ) -> [CookieJar.Entry] {
    removeEnded(at: now)
    let indices = entries.indices.filter { entries[$0].cookie.isFor(url, isProtected: isProtected) }
    for index in indices { entries[index].used = events }
    return indices.map { entries[$0] }
  }

  fileprivate mutating func store(_ cookie: Cookie, _ events: UInt64, isProtected: Bool, at now: Int64) {
    removeEnded(at: now)
    if let index = entries.firstIndex(where: { cookie.replaces($0.cookie) }) {
      // A server deletes a cookie by setting it with an end in the past.
      if cookie.hasEnded(at: now) {
        entries.remove(at: index)
        changes += 1
      } else {
        if !cookie.isEqual(to: entries[index].cookie) { changes += 1 }
        entries[index].cookie = cookie
        entries[index].used = events
      }
    } else if !cookie.hasEnded(at: now), makeRoom(isProtected: isProtected) {
      entries.append(CookieJar.Entry(cookie: cookie, created: events, used: events))
      changes += 1
    }
  }

  /// Removes a cookie if there are too many. Cookies without `Secure` go before those with it. Among equals,
  /// the cookie goes that was used longest ago.
  ///
  /// - Returns: false if all are for protected requests, and the new cookie came without protection.
  private mutating func makeRoom(isProtected: Bool) -> Bool {
    guard entries.count >= CookieJar.mostPerDomain else { return true }
    let rank = { (entry: CookieJar.Entry) in (entry.cookie.isSecure ? 1 : 0, entry.used) }
    guard let last = entries.indices.min(by: { rank(entries[$0]) < rank(entries[$1]) }),
      isProtected || !entries[last].cookie.isSecure
    else { return false }
    entries.remove(at: last)
    return true
  }
}
