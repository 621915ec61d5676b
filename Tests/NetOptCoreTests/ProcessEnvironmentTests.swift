import Glibc
import NetOptCore
import Testing

@Suite struct ProcessEnvironmentTests {
  @Test(
    "an environment block is read without the variables whose names are not ASCII", .timeLimit(.minutes(1)))
  func block() {
    let marks = String(repeating: "\u{301}\u{316}", count: 50_000)
    let entries = ["A=1", "B=x=y é", "A=2", "N\(marks)=3", "é=4", "no value", "C=", "=5"]
    var pointers = entries.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    #expect(ProcessEnvironment.variables(of: pointers) == ["A": "1", "B": "x=y é", "C": "", "": "5"])
  }

  @Test("the process has the variables that getenv finds")
  func process() {
    #expect(ProcessEnvironment.variables["PATH"] == getenv("PATH").map { String(cString: $0) })
  }
}
