import FoundationEssentials
import NetOptCore
import NetOptRouting

extension ClientConfiguration {
  /// Reads the files that a client with this configuration reads when it is made: the list with its
  /// signature, those of the TLS settings, and the indices of the seed packs. Opens no connection and writes
  /// nothing.
  ///
  /// - Returns: a fault for each of these settings whose files cannot be used, with the setting's path in the
  ///   configuration file.
  package func fileFaults() -> [SettingFault] {
    var faults: [SettingFault] = []
    // A client ignores a last good copy that it cannot read.
    var configured = self
    configured.listUpdates.keepCopy = false
    do throws(NetOptError) { _ = try configured.startList() } catch {
      faults.append(SettingFault("$.list", error.message))
    }
    faults += tlsFaults()
    for (index, directory) in (cache?.seedPacks ?? []).enumerated() {
      do throws(NetOptError) { _ = try ResponseCache.seedPack(directory, trustedKeys) { _ in } } catch {
        faults.append(SettingFault("$.cache.seed_packs[\(index)]", error.message))
      }
    }
    return faults
  }

  /// Reads the files of the TLS settings: first those of each setting alone, in order to name the setting of
  /// a fault, and then all together.
  private func tlsFaults() -> [SettingFault] {
    let hosts = tls.hosts.sorted { $0.key < $1.key }
    let path = JSONPath().key("tls")
    let all = [(path, tls)] + hosts.map { (path.key("hosts").key($0.key), $0.value) }
    let faults = all.flatMap { path, settings in
      settings.parts.compactMap { key, part in
        Self.fault(of: part).map { SettingFault(path.key(key).description, $0) }
      }
    }
    if !faults.isEmpty { return faults }
    return Self.fault(of: tls).map { [SettingFault(path.description, $0)] } ?? []
  }

  /// The reason why a client cannot use the files of TLS settings; `nil` if it can.
  private static func fault(of tls: TLS) -> String? {
    var configuration = ClientConfiguration()
    configuration.tls = tls
    do throws(NetOptError) {
      try configuration.checkAuthorityFiles()
      try LoadedTLS(tls).checkAuthorities()
      return nil
    } catch { return error.message }
  }
}

extension ClientConfiguration.TLS {
  /// The settings split by file: for each file, its key in the configuration, and settings with only this
  /// file.
  fileprivate var parts: [(key: String, settings: Self)] {
    var (authorities, text, revocations, certificate) = (Self(), Self(), Self(), Self())
    authorities.caFile = caFile
    text.caBytes = caBytes
    revocations.revocationFile = revocationFile
    certificate.clientCertificate = clientCertificate
    return [
      ("ca_file", authorities), ("ca_pem", text), ("revocation_file", revocations),
      ("client_certificate", certificate),
    ]
  }
}
