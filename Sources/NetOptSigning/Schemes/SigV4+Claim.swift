import NetOptCore

extension SigV4 {
  package func claim(in request: SigningRequest) throws(SigningFault) -> Claim {
    try request.checkEncoding(isForm: false)
    if let value = try request.onlyValue(of: "Authorization"), value.hasPrefix(Self.label) {
      return try headerClaim(value, request)
    }
    let pairs = QueryParameters(request.query, plus: false).pairs
    guard pairs.contains(where: { $0.key.elementsEqual("X-Amz-Signature".utf8) }) else {
      throw SigningFault(
        .noSignature,
        "there is neither an Authorization field with \(Self.label) nor X-Amz-Signature in the query")
    }
    var values: [String: String] = [:]
    for pair in pairs {
      let name = String(decoding: pair.key, as: UTF8.self)
      guard name.hasPrefix("X-Amz-") else { continue }
      guard values[name] == nil else {
        throw SigningFault(.malformedSignature, "the query has \(name) twice")
      }
      values[name] = String(decoding: pair.value, as: UTF8.self)
    }
    guard values["X-Amz-Algorithm"] == Self.label else {
      throw SigningFault(.malformedSignature, "X-Amz-Algorithm is not \(Self.label)")
    }
    guard let seconds = values["X-Amz-Expires"].flatMap({ Int64($0) }), (1...604_800).contains(seconds) else {
      throw SigningFault(.malformedSignature, "X-Amz-Expires is not 1 to 604800")
    }
    return try claim(
      credential: values["X-Amz-Credential"] ?? "", names: values["X-Amz-SignedHeaders"] ?? "",
      signature: values["X-Amz-Signature"] ?? "", date: values["X-Amz-Date"] ?? "", validFor: seconds)
  }

  /// Reads the signature in an Authorization field.
  private func headerClaim(_ value: String, _ request: SigningRequest) throws(SigningFault) -> Claim {
    let rest = value.dropFirst(Self.label.count)
    guard rest.utf8.first == 0x20 else {
      throw SigningFault(.malformedSignature, "a space and the parameters must follow \(Self.label)")
    }
    let parameters = try CredentialParameters(rest, names: ["Credential", "SignedHeaders", "Signature"])
    guard let date = try request.onlyValue(of: "X-Amz-Date") else {
      throw SigningFault(.malformedSignature, "there is no X-Amz-Date field")
    }
    return try claim(
      credential: parameters["Credential"], names: parameters["SignedHeaders"],
      signature: parameters["Signature"], date: date, validFor: nil)
  }

  /// Makes the claim from the values of a header or a query.
  ///
  /// - Parameters:
  ///   - credential: `ID/DATE/REGION/SERVICE/aws4_request`, where ID is the id of the key.
  ///   - names: the names of the signed fields, separated by ";".
  ///   - signature: 64 hexadecimal digits.
  ///   - date: the time of signing in UTC, for example `20150830T123600Z`.
  ///   - seconds: for how many seconds a presigned URL is valid; `nil` for the header form.
  private func claim(
    credential: String, names: String, signature: String, date: String, validFor seconds: Int64?
  ) throws(SigningFault) -> Claim {
    let fields = credential.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 5, !fields[0].isEmpty, fields[4] == Self.terminator else {
      throw SigningFault(
        .malformedSignature, "the credential is not ID/DATE/REGION/SERVICE/\(Self.terminator)")
    }
    guard let time = CivilTime(basic: date) else {
      throw SigningFault(.malformedSignature, "X-Amz-Date is not a time such as 20150830T123600Z")
    }
    guard fields[1] == date.prefix(8) else {
      throw SigningFault(.malformedSignature, "the day of the credential differs from that of X-Amz-Date")
    }
    let covered = names.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
    let isFine = covered.allSatisfy { HeaderFields.isToken($0) && $0 == $0.loweredASCII }
    guard isFine, covered.count <= Claim.mostCovered,
      zip(covered, covered.dropFirst()).allSatisfy({ $0 < $1 })
    else {
      throw SigningFault(
        .malformedSignature,
        "SignedHeaders is not a list of up to \(Claim.mostCovered) names in lower case, sorted, parted by ;")
    }
    guard let bytes = Hex.bytes(signature.utf8), bytes.count == 32 else {
      throw SigningFault(.malformedSignature, "the signature is not 64 hexadecimal digits in lower case")
    }
    return Claim(
      keyID: fields[0], created: time.seconds, expires: seconds.map { time.seconds + $0 },
      outlivesWindow: seconds != nil, covered: covered,
      signature: bytes,
      parts: .sigV4(
        Parts(date: date, region: fields[2], service: fields[3], isPresigned: seconds != nil)))
  }
}
