import NetOptCore

extension SigV4: SchemeKind {
  static let optionNames = [
    "region", "service", "normalize_path", "sign_body", "omit_session_token", "presign_seconds",
  ]

  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    var made = SigV4.Options()
    made.region = try options?.member("region")?.string()
    made.service = try options?.member("service")?.string()
    made.normalizePath = try options?.member("normalize_path")?.bool() ?? true
    made.signBody = try options?.member("sign_body")?.bool() ?? false
    made.omitSessionToken = try options?.member("omit_session_token")?.bool() ?? false
    made.presignSeconds = try options?.member("presign_seconds").map { (part) throws(JSONFault) in
      Int(clamping: try part.integer())
    }
    return .success(SigV4(made))
  }

  static func recognises(_ request: SigningRequest) -> Bool {
    // If both schemes recognised the request, `SchemeName.detected` would choose `sigv4`, which is declared
    // after `rfc9421`. But a request with a Signature-Input field counts as `rfc9421`.
    if RFC9421.recognises(request) { return false }
    let isPresigned = request.query?.utf8.firstRange(ofBytes: "X-Amz-Signature=") != nil
    return request.headers["Authorization"]?.hasPrefix(label) == true || isPresigned
  }
}
