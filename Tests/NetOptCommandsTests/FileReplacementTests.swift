import Glibc
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of `FileReplacement`, with which commands write output files: it writes to a draft beside the file,
/// and its `commit` puts the draft in the place of the file.
@Suite struct FileReplacementTests {
  /// A temporary directory.
  private let directory: String

  init() throws { directory = try TemporaryDirectory.make("files") }

  /// Returns the permissions of a file; 0 if the file does not exist.
  private func mode(of path: String) -> mode_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  /// Writes a file with one `FileReplacement`.
  private func replace(_ path: String, with text: String) throws {
    let file = try FileReplacement(path)
    try file.write(Array(text.utf8))
    try file.commit()
  }

  @Test("a replacement creates a new file that is not executable")
  func newFile() throws {
    try replace(directory + "/new", with: "text")
    #expect(try Files.read(directory + "/new") == "text")
    #expect(mode(of: directory + "/new") & 0o111 == 0)
    #expect(try Files.names(in: directory) == ["new"])
  }

  @Test("a replacement changes the content and keeps the mode of the old file")
  func oldFile() throws {
    let path = directory + "/old"
    try Files.write("a longer text than the new one", to: path)
    chmod(path, 0o640)
    try replace(path, with: "new")
    #expect(try Files.read(path) == "new")
    #expect(mode(of: path) == 0o640)
    #expect(try Files.names(in: directory) == ["old"])
  }

  @Test("the old file stays until the commit, and without a commit the draft is removed")
  func incompleteReplacement() throws {
    let path = directory + "/old"
    try Files.write("old", to: path)
    do {
      let file = try FileReplacement(path)
      try file.write(Array("half".utf8))
      #expect(try Files.read(path) == "old")
      // The directory has the old file and the draft.
      #expect(try Files.names(in: directory).count == 2)
    }
    #expect(try Files.read(path) == "old")
    #expect(try Files.names(in: directory) == ["old"])
  }

  @Test("a replacement changes the target of a link and keeps the link")
  func link() throws {
    try Files.write("old", to: directory + "/file")
    symlink("file", directory + "/link")
    try replace(directory + "/link", with: "new")
    #expect(try Files.read(directory + "/file") == "new")
    var status = stat()
    #expect(lstat(directory + "/link", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test("a replacement writes to a device and does not replace it")
  func device() throws {
    try replace("/dev/null", with: "text")
    var status = stat()
    #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
  }

  @Test("a write to a full device fails with ENOSPC")
  func fullDevice() throws {
    #expect(throws: OutputError(kind: .refused(ENOSPC), target: "/dev/full")) {
      try replace("/dev/full", with: "text")
    }
  }

  @Test("a replacement of a folder fails with EISDIR")
  func folder() {
    #expect(throws: OutputError(kind: .refused(EISDIR), target: directory)) {
      try replace(directory, with: "text")
    }
  }

  @Test("a replacement in a missing folder fails with ENOENT", arguments: ["/no/such/folder", "/"])
  func missingFolder(tail: String) {
    #expect(throws: OutputError(kind: .refused(ENOENT), target: directory + "/x" + tail)) {
      try replace(directory + "/x" + tail, with: "text")
    }
  }

  @Test("a replacement with an empty name fails with ENOENT")
  func emptyName() {
    #expect(throws: OutputError(kind: .refused(ENOENT), target: "a file without a name")) {
      try replace("", with: "text")
    }
  }
}
