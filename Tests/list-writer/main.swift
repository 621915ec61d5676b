// Usage: list-writer DIRECTORY KEY URL
//
// Replaces a list and the copy of it, again and again, as fast as possible, until it is killed.
// `ListKillTests` kills it, and then checks that the list and the copy are complete.
//
// DIRECTORY contains the list, list.json, and its signature. The copy goes to DIRECTORY/state (`ListStore`).
// KEY is the file of an unencrypted secret key, which signs each new list. URL is the refresh URL in each
// list.
import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting

let directory = CommandLine.arguments[1]
let url = try HTTPURL(CommandLine.arguments[3])
let key = try MinisignSecretKey(
  FileBytes.read(CommandLine.arguments[2], upTo: 4096, as: "the key", in: .list), file: "the key"
) { () throws(NetOptError) in
  throw NetOptError(.invalidKey, phase: .list, "the key is encrypted")
}
let reader = ListReader(trustedKeys: [key.publicKey], allowPrivateAddresses: true)
let store = ListStore(directory: "\(directory)/state", for: reader)
let endpoints = (0..<250).map { #"{"ip":"10.0.\#($0).1","region":"somewhere"}"# }.joined(separator: ",")
/// The serial of the list in the file. Each new list has the next one.
var serial = try reader.file("\(directory)/list.json", at: Date(), allowExpired: false).list.serial
while true {
  serial += 1
  let bytes = Array(
    #"{"schema":1,"serial":\#(serial),"refresh":{"url":"\#(url)"},"hosts":{"a.test":{"endpoints":[\#(endpoints)]}}}"#
      .utf8)
  let signature = Array(
    try key.signature(of: bytes, untrustedComment: "a comment", trustedComment: "serial \(serial)").text.utf8)
  let list = try reader.check(bytes, signature: signature, name: "the new list", at: Date())
  try store.keep(
    ListStore.Copy(source: url.description, tag: "\"\(serial)\"", list: bytes, signature: signature), of: url
  ) { _ in false }
  try store.keep(RefreshSchedule.Record(checked: Date(), attempted: Date(), failures: 0), of: url)
  guard try reader.replace("\(directory)/list.json", by: list, at: Date()) else {
    fatalError("nobody else writes the list")
  }
}
