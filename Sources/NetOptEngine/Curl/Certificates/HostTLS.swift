import NetOptCore

/// The TLS settings of the connections to a host, and what they name in OpenSSL's form. Connections with
/// different objects are never shared. Confined to the loop.
final class HostTLS {
  let settings: TLSSettings
  /// The pins in the form of CURLOPT_PINNEDPUBLICKEY(3); `nil` for none.
  let pins: String?
  let authorities: Authorities
  /// The authorities, or why there are none; `nil` until they are loaded, and when libcurl reads them itself.
  var trust: Trust?

  /// - Parameter pins: the pins of the host, in place of those of the settings.
  init(_ settings: TLSSettings, pins: [PublicKeyPin]) {
    self.settings = settings
    self.pins = pins.isEmpty ? nil : PublicKeyPin.curlText(pins)
    authorities =
      settings.authorities.map { .given($0, name: settings.authoritiesName) } ?? .system(settings.systemFile)
  }

  /// Whether libcurl reads the authorities itself, at each new connection: it uses no OpenSSL, or it has a
  /// directory of authorities and no file.
  var leavesAuthoritiesToCurl: Bool { OpenSSL.loaded == nil || authorities == .system(nil) }

  /// Whether the authorities are loaded, perhaps not yet parsed.
  var hasTrust: Bool { trust?.store != nil }

  /// Why no certificate can be verified; `nil` when the authorities are loaded.
  var failure: LegFailure? {
    switch trust {
    case .store(let store): store.isDamaged ? authorities.failure : nil
    case .failure(let failure): failure
    case nil: nil
    }
  }

  /// Applies the settings to a context.
  ///
  /// - Parameters:
  ///   - context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  ///   - identifies: whether connections of the context show the client certificate.
  /// - Returns: false when OpenSSL refuses the client certificate.
  func apply(to context: OpaquePointer, identifies: Bool) -> Bool {
    trust?.store?.use(in: context)
    if identifies, let identity = settings.identity { return identity.use(in: context) }
    return true
  }
}
