import CCurl

/// The dates of cookies (RFC 6265, section 5.1.1), which servers write in many forms.
package enum CookieDate {
  /// Reads a date with libcurl (curl_getdate(3)).
  ///
  /// - Returns: the second since 1970; `nil` for a text that is no date.
  package static func seconds(of text: String) -> Int64? {
    let seconds = curl_getdate(text, nil)
    return seconds == -1 ? nil : Int64(seconds)
  }
}
