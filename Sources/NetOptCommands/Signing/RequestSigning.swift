import NetOpt
import NetOptCore
import NetOptSigning

/// The signing options of the commands that send requests.
enum RequestSigning {
  private static let sign = Option(
    "sign", takes: .required("KEYID"), "sign the request with this key of the key ring; needs --keys")

  /// The options, in the order of the help text.
  static let options = [
    sign, SigningOptions.keys, SigningOptions.scheme, SigningOptions.options, SigningOptions.allowWeak,
  ]

  /// Returns the signing configuration of the client; `nil` without `--sign`. The client signs only requests
  /// to the host of `request`, so a redirect to another host is not signed.
  static func configuration(
    _ arguments: Arguments, _ request: NetOptRequest
  ) throws -> ClientConfiguration.Signing? {
    guard let keyID = arguments.value(of: sign) else { return nil }
    let signer = try RequestSigner(
      keys: try SigningOptions.ring(arguments), keyID: keyID,
      scheme: try SigningOptions.schemeName(arguments) ?? .netopt1,
      options: arguments.value(of: SigningOptions.options) ?? "{}",
      allowWeak: arguments.has(SigningOptions.allowWeak))
    return ClientConfiguration.Signing(signer: signer, hosts: [request.url.origin.host])
  }
}
