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
      var found: [(length: Int, created: UInt64, text: String)] = []
      for name in Self.domains(of: url.origin) where state.domains[name] != nil {
        state.use(name, at: now) { entry, events in
          guard entry.cookie.isFor(url, isProtected: isProtected) else { return }
          entry.used = events
          found.append((entry.cookie.path.utf8.count, entry.created, entry.cookie.text))
        }
      }
      // Cookies of longer paths come first, then those that were set first.
      found.sort { a, b in (b.length, a.created) < (a.length, b.created) }
      var field = ""
      for cookie in found where field.utf8.count + cookie.text.utf8.count + 2 <= Self.longestField {
        field += field.isEmpty ? cookie.text : "; \(cookie.text)"
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

  /// Returns a text that names the cookies of a host. It differs from all earlier texts once the cookies have
  /// changed, even if they are later the same again.
  func session(of url: HTTPURL, at now: Int64) -> String {
    let changes = state.withLock { state in
      Self.domains(of: url.origin).reduce(into: UInt64(0)) { sum, name in
        guard state.domains[name] != nil else { return }
        state.use(name, at: now) { _, _ in }
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
  /// Removes the cookies of a domain that have ended, and calls a closure with each other one and the number
  /// of events.
  fileprivate mutating func use(
    _ name: String, at now: Int64, _ body: (inout CookieJar.Entry, UInt64) -> Void
  ) {
    guard var domain = domains.removeValue(forKey: name) else { return }
    let count = domain.entries.count
    domain.entries.removeAll { $0.cookie.hasEnded(at: now) }
    if domain.entries.count < count { domain.changes += 1 }
    for index in domain.entries.indices { body(&domain.entries[index], events) }
    domains[name] = domain
  }

  fileprivate mutating func store(_ cookie: Cookie, isProtected: Bool, at now: Int64) {
    events += 1
    if !isProtected {
      let hides = { (entry: CookieJar.Entry) in
        cookie.hides(entry.cookie) && !entry.cookie.hasEnded(at: now)
      }
      if domains.values.contains(where: { $0.entries.contains(where: hides) }) { return }
    }
    use(cookie.domain, at: now) { _, _ in }
    var domain = domains.removeValue(forKey: cookie.domain) ?? CookieJar.Domain()
    domain.store(cookie, events, isProtected: isProtected, at: now)
    domains[cookie.domain] = domain
  }
}

extension CookieJar.Domain {
  fileprivate mutating func store(_ cookie: Cookie, _ events: UInt64, isProtected: Bool, at now: Int64) {
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

  /// Removes a cookie if there are too many: first one that is not only for protected requests, then the one
  /// that was used longest ago.
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
