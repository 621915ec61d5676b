import NetOptCore
import NetOptLocking

/// The cookies of a client, in memory. Safe to use from any thread. Its mirror has no children, so that a
/// dump of the client does not show the cookies.
final class CookieJar: Sendable, CustomReflectable {
  /// The maximum number of cookies of a domain (RFC 6265, section 6.1).
  static let mostPerDomain = 50

  var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }

  fileprivate struct Entry {
    var cookie: Cookie
    /// When the cookie was last set or sent.
    var used: UInt64
  }

  fileprivate struct State {
    /// The cookies in the order in which they were set first.
    var entries: [Entry] = []
    /// Counts the events. Unlike a time, no two events have the same count.
    var events: UInt64 = 0
  }

  private let state = Locked(State())

  /// Returns the value of the `Cookie` field of a request (RFC 6265, section 5.4).
  ///
  /// - Parameters:
  ///   - isProtected: whether the request goes over TLS to a verified server.
  ///   - now: the second since 1970.
  /// - Returns: `nil` if the request gets no cookie.
  func field(for url: HTTPURL, isProtected: Bool, at now: Int64) -> String? {
    state.withLock { state in
      state.events += 1
      var found: [(length: Int, text: String)] = []
      for index in state.entries.indices {
        let cookie = state.entries[index].cookie
        guard !cookie.hasEnded(at: now), cookie.isFor(url, isProtected: isProtected) else { continue }
        state.entries[index].used = state.events
        found.append((cookie.path.utf8.count, cookie.text))
      }
      guard !found.isEmpty else { return nil }
      // Cookies of longer paths come first. Otherwise the order stays: the one that was set first.
      let sorted = found.enumerated().sorted { a, b in
        (b.element.length, a.offset) < (a.element.length, b.offset)
      }
      return sorted.map(\.element.text).joined(separator: "; ")
    }
  }

  /// Stores the cookies that a response sets (RFC 6265, section 5.3).
  ///
  /// - Parameters:
  ///   - fields: the values of the response's `Set-Cookie` fields.
  ///   - url: the URL of the request.
  ///   - isProtected: whether the response came over TLS from a verified server.
  ///   - now: the second since 1970.
  func store(_ fields: [String], from url: HTTPURL, isProtected: Bool, at now: Int64) {
    for field in fields {
      guard let cookie = Cookie(field, from: url, isProtected: isProtected, at: now) else { continue }
      state.withLock { $0.store(cookie, isProtected: isProtected, at: now) }
    }
  }
}

extension CookieJar.State {
  fileprivate mutating func store(_ cookie: Cookie, isProtected: Bool, at now: Int64) {
    entries.removeAll { $0.cookie.hasEnded(at: now) }
    if !isProtected, entries.contains(where: { cookie.hides($0.cookie) }) { return }
    events += 1
    if let index = entries.firstIndex(where: { cookie.replaces($0.cookie) }) {
      // A server deletes a cookie by setting it with an end in the past.
      if cookie.hasEnded(at: now) {
        entries.remove(at: index)
      } else {
        entries[index].cookie = cookie
        entries[index].used = events
      }
    } else if !cookie.hasEnded(at: now) {
      makeRoom(in: cookie.domain)
      entries.append(CookieJar.Entry(cookie: cookie, used: events))
    }
  }

  /// Removes a cookie of a domain that has too many: first one that is not only for protected requests, then
  /// the one that was used longest ago.
  private mutating func makeRoom(in domain: String) {
    let indices = entries.indices.filter { entries[$0].cookie.domain == domain }
    guard indices.count >= CookieJar.mostPerDomain else { return }
    let last = indices.min { a, b in
      (entries[a].cookie.isSecure ? 1 : 0, entries[a].used) < (
        entries[b].cookie.isSecure ? 1 : 0, entries[b].used
      )
    }
    if let last { entries.remove(at: last) }
  }
}
