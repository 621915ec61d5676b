/// Parameters as people may see them.
package enum SecretParameters {
  private static let words = [
    "token", "secret", "pass", "pwd", "key", "auth", "sig", "session", "sid", "credential", "code", "jwt",
    "otp", "pin",
  ]

  /// Hides the values of parameters whose names speak of secrets: `q=lamp&access_token=…`.
  package static func hidden(_ parameters: String) -> String {
    parameters.split(separator: "&", omittingEmptySubsequences: false).map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = parts[0].lowercased()
      guard parts.count == 2, words.contains(where: { name.contains($0) }) else { return String(pair) }
      return "\(parts[0])=[hidden]"
    }.joined(separator: "&")
  }
}
