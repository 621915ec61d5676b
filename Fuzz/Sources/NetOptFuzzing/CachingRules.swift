import NetOptCaching
import NetOptCore
import NetOptSigning

/// The rules for the decisions of the cache, for any fields of requests and responses. Each function returns
/// a description of the broken rule, or `nil` when all its rules hold.
enum CachingRules {
  /// Checks an input of the target `cache-headers` (`CacheScript`).
  static func headers(_ input: [UInt8]) -> String? {
    guard let script = CacheScript(input) else { return nil }
    let terms = ResponseTerms(
      status: script.status, fields: script.fields, requested: script.requested, received: script.received)
    return directives(script.fields) ?? directives(script.first.fields) ?? freshness(terms, script)
      ?? storing(terms, script) ?? stored(terms, script)
  }

  // MARK: Directives

  /// Compares the parsed directives of `Cache-Control` with those that a second, simple parser finds. The
  /// second parser reads only fields without quotes.
  private static func directives(_ fields: HeaderFields) -> String? {
    let control = CacheControl(fields)
    let lines = fields.values(of: "Cache-Control")
    if control.noStore, !lines.contains(where: { $0.lowercased().contains("no-store") }) {
      return "there is a no-store that nobody wrote"
    }
    guard !lines.contains(where: { $0.utf8.contains(0x22) }) else { return nil }
    let members = lines.flatMap { $0.utf8.split(separator: 0x2c) }
      .map { String(decoding: ByteClass.trimmed(Array($0)), as: UTF8.self).lowercased() }
    if members.contains("no-store"), !control.noStore { return "no-store is overlooked" }
    if members.contains("no-cache"), !control.noCache { return "no-cache is overlooked" }
    if members.contains("must-revalidate"), !control.mustRevalidate { return "must-revalidate is overlooked" }
    let ages = members.filter { $0.hasPrefix("max-age") }
    guard ages.count == 1, let digits = ages.first?.dropFirst(8), ages[0].hasPrefix("max-age="),
      digits.utf8.count < 10, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let seconds = Int64(digits)
    else { return nil }
    return control.maxAge == seconds * 1000
      ? nil : "max-age is \(control.maxAge ?? -1) ms, and should be \(seconds) s"
  }

  /// Checks the lifetime of a response, and its age at several moments.
  private static func freshness(_ terms: ResponseTerms, _ script: CacheScript) -> String? {
    if terms.freshness.lifetime < 0 { return "the lifetime is \(terms.freshness.lifetime)" }
    if terms.freshness.initialAge < 0 { return "the initial age is \(terms.freshness.initialAge)" }
    let moments = [script.received, script.now, script.now + 1000].sorted().drop { $0 < script.received }
    let ages = moments.map(terms.age)
    if terms.age(at: script.received - 1000) != .max { return "it has an age before it came" }
    if zip(ages, ages.dropFirst()).contains(where: { $0 > $1 }) { return "it grows younger: \(ages)" }
    let control = terms.control
    if let maxAge = control.maxAge, terms.freshness.lifetime != maxAge { return "max-age does not count" }
    return nil
  }

  // MARK: Storing

  /// Checks that none of the three policies stores the response to the first request when it must not be
  /// stored.
  private static func storing(_ terms: ResponseTerms, _ script: CacheScript) -> String? {
    let control = terms.control
    let isForbidden = script.first.control.noStore || control.noStore && !control.mustUnderstand
    let http = Storing(script.first, status: script.status, script.fields, terms)
    var declaration = CacheOptions.Declaration(timeToLive: .seconds(60))
    declaration.negativeTimeToLive = .seconds(5)
    let declared = DeclaredPolicy(declaration).storing(
      script.first, status: script.status, script.fields, control)
    let versioned = VersionedPolicy(CacheOptions.Versions())
      .storing(script.first, status: script.status, script.fields, control)
    for (rules, storing) in [("http", http), ("api", declared), ("versioned", versioned)]
    where storing.isStored {
      if isForbidden { return "no-store is stored in mode \(rules)" }
      if control.noStore, rules != "http" { return "no-store is stored in mode \(rules)" }
      if Vary(script.fields) == .everything { return "Vary: * is stored in mode \(rules)" }
      if script.status == 206 { return "partial content is stored in mode \(rules)" }
      if script.status < 200 || script.status == 304 { return "\(script.status) is stored in mode \(rules)" }
    }
    guard http.isStored else { return nil }
    if script.first.method != .get, script.first.method != .post {
      return "an answer to \(script.first.method) is stored"
    }
    if terms.freshness.lifetime == 0, terms.validators.isEmpty, control.staleIfError == nil {
      return "what is of no use is stored"
    }
    return nil
  }

  /// Makes a cache entry from the response to the first request, and checks its fields, its key, and its use
  /// for the second request. Does so even if no policy would store the response.
  private static func stored(_ terms: ResponseTerms, _ script: CacheScript) -> String? {
    let isDecoded = script.first.wantsDecoded && ContentCoding.isDecodable(script.fields)
    func kept(_ fields: HeaderFields) -> HeaderFields {
      StoredFields.stored(
        fields, control: CacheControl(fields), isDecoded: isDecoded, received: script.received)
    }
    let fields = kept(script.fields)
    if kept(fields) != fields { return "what is stored of what is stored is something else" }
    if let fault = unfit(fields, isDecoded) { return fault }
    guard
      let partitions = try? [script.first, script.second].map({
        try RequestKey.partition(
          "tenant", $0, credentialFields: CredentialFields(["authorization"]), isVerified: true)
      }), let key = try? RequestKey.url(script.first.url, partition: partitions[0])
    else { return nil }
    let credentials = [script.first, script.second].map { $0.fields["Authorization"] }
    if partitions[0] == partitions[1], credentials[0] != credentials[1] {
      return "Authorization does not tell users apart"
    }
    if partitions[0] != partitions[1], script.first.fields == script.second.fields {
      return "the same fields have two partitions"
    }
    let entry = CacheEntry(
      key: key, selectors: Vary(fields).selectors(of: script.first), status: script.status,
      fields: fields,
      body: Array("0123456789".utf8), requested: script.requested, received: script.received,
      fetchMicroseconds: 20_000)
    if !Vary.selects(entry, script.first) { return "an answer is not for its own request" }
    return CacheUseRules.use(of: entry, script)
  }

  /// Returns why an entry must not have these fields; `nil` when it may.
  ///
  /// - Parameter isDecoded: whether the transfer decoded the content.
  static func unfit(_ fields: HeaderFields, _ isDecoded: Bool) -> String? {
    for name in ["Connection", "Transfer-Encoding", "Keep-Alive", "Proxy-Authenticate", "Upgrade", "TE"]
    where fields.contains(name: name) { return "\(name) is stored" }
    if !fields.contains(name: "Date") { return "what is stored has no date" }
    guard isDecoded else { return nil }
    for name in ["Content-Encoding", "Content-Length"] where fields.contains(name: name) {
      return "\(name) is stored of what was decoded"
    }
    if let tag = fields["ETag"].flatMap({ EntityTag($0) }), !tag.isWeak {
      return "decoded content has a strong tag"
    }
    return nil
  }
}
