import NetOptCore
import NetOptSigning

extension ClientConfiguration.Signing {
  /// Reads the settings, and the key ring that they name; `nil` after a fault.
  init?(reading object: SettingObject) {
    let count = object.report.faultCount
    object.require("keys_file", "key_id", "hosts")
    var keysFile: String?
    var keyID: String?
    var scheme = SchemeName.netopt1
    var options = "{}"
    var allowsWeak = false
    var (trustsPlainDates, hosts): (Bool, [String]) = (false, [])
    object.file("keys_file", &keysFile)
    object.text("key_id", &keyID)
    object.word("scheme", &scheme)
    if let value = object.member("options"),
      let members = value.members("an object with the options of the scheme")
    {
      options = value.json
      if !members.isEmpty { value.change(to: .string(options)) }
    }
    object.flag("allow_weak", &allowsWeak)
    object.flag("trust_plain_dates", &trustsPlainDates)
    object.texts("hosts", &hosts, { $0.host() }, "host names")
    guard let keysFile, let keyID, object.report.faultCount == count else { return nil }
    if hosts.isEmpty {
      object.refuse("hosts", "is empty, so no request would be signed")
      return nil
    }
    guard let signer = Self.signer(object, keysFile, keyID, scheme, options, allowsWeak) else { return nil }
    self.init(signer: signer, hosts: Set(hosts))
    self.trustsPlainDates = trustsPlainDates
  }

  /// Reads the key ring and makes the signer.
  private static func signer(
    _ object: SettingObject, _ keysFile: String, _ keyID: String, _ scheme: SchemeName, _ options: String,
    _ allowsWeak: Bool
  ) -> RequestSigner? {
    let keys: KeyRing
    do throws(NetOptError) { keys = try KeyRing.load(keysFile) } catch {
      object.refuse("keys_file", error.message)
      return nil
    }
    guard keys[keyID] != nil else {
      object.refuse("key_id", "is not the id of a key in the key ring")
      return nil
    }
    do throws(NetOptError) {
      return try RequestSigner(
        keys: keys, keyID: keyID, scheme: scheme, options: options, allowWeak: allowsWeak)
    } catch {
      if error.code == .signingFailed {
        object.refuse(
          "scheme", "is weak; docs/signing.md explains this, and \"allow_weak\": true allows the scheme")
      } else {
        object.refuse("options", error.message)
      }
      return nil
    }
  }
}
