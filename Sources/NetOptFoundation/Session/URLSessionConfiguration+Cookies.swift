import Foundation
import FoundationNetworking
import NetOpt

/// The cookies of a session, in the storage of its configuration.
extension URLSessionConfiguration {
  /// Returns the value of `Cookie` for a URL; `nil` if the storage has no cookies for it or is not used.
  func cookieField(for url: URL) -> String? {
    guard httpShouldSetCookies, let stored = httpCookieStorage?.cookies(for: url) else { return nil }
    // Foundation on Linux selects them by the host alone.
    let cookies = stored.filter { !$0.isSecure || url.scheme?.lowercased() == "https" }
    guard !cookies.isEmpty else { return nil }
    let field = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"] ?? ""
    return field.isEmpty ? nil : field
  }

  /// Stores the cookies that a response sets.
  func storeCookies(of fields: HeaderFields, from url: URL) {
    guard httpCookieAcceptPolicy != .never, let storage = httpCookieStorage else { return }
    // One field after the other: Foundation reads several cookies in one value, but joined values are
    // ambiguous, because dates contain commas.
    for value in fields.values(of: "Set-Cookie") {
      let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
      if !cookies.isEmpty { storage.setCookies(cookies, for: url, mainDocumentURL: nil) }
    }
  }
}
