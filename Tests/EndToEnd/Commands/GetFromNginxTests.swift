import Glibc
import TestSupport
import Testing

/// `spoolrun get` from a real server, over TLS.
@Suite struct GetFromNginxTests {
  @Test(.timeLimit(.minutes(10)), .enabled("needs openssl and nginx") { try await Need.nginx.isMet() })
  func `killed twice, and there in the end`() async throws {
    let authority = try await CertificateAuthority()
    let nginx = try await NginxRig(authority: authority)
    // Once more where this process stood still for so long that the file was whole before it was killed.
    for round in 1...5 {
      if try await isKilledTwice(nginx, authority, "data\(round).bin") { return }
    }
    Issue.record("the file was whole before the command was killed, each time")
  }

  /// - Returns: false if the file was whole before.
  private func isKilledTwice(
    _ nginx: NginxRig, _ authority: CertificateAuthority, _ name: String
  ) async throws -> Bool {
    let home = try TemporaryDirectory()
    // nginx sends 1 MiB a second there, so there is time to kill it, also on a busy machine.
    let body = (0..<8 << 20).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5 ^ $0) }
    try nginx.publish(name, body)
    let arguments = [
      "get", "--connections", "1", "--cacert", authority.authority, nginx.url(.https, "/slow/\(name)"),
    ]
    func start() throws -> RunningCommand {
      try startSpoolrun(arguments, environment: ["XDG_STATE_HOME": home.path], directory: home.path)
    }
    let partial = "\(home.path)/.spoolrun/partial"
    let length: @Sendable () -> Int = {
      let data = names(in: partial).filter { $0.hasSuffix(".part") }
      return data.compactMap { fileStatus("\(partial)/\($0)") }.map { Int($0.st_size) }.first ?? 0
    }
    var lengths = [0]
    for signal in [SIGKILL, SIGINT] {
      let command = try start()
      let wanted = lengths[lengths.count - 1] + 300_000
      // At once: before this task goes on, a busy machine could have had time for the rest of the file.
      try await waitUntil("it has grown") {
        guard length() > wanted else { return command.isFinished }
        command.send(signal: signal)
        return true
      }
      if try await command.result().status == .exited(0) { return false }
      lengths.append(length())
      #expect(names(in: home.path) == ["spoolrun"])
    }
    try await start().result().exits(0)
    #expect(try readFile("\(home.path)/\(name)") == body)
    let ranges = lengths.map { $0 == 0 ? "-" : "bytes=\(resumePoint(after: $0))-" }
    @Sendable func asked() throws -> [String] {
      try nginx.accessLog().filter { $0.target == "/slow/\(name)" }.map(\.range)
    }
    try await waitUntil("the log has them all") { try asked().count == 3 }
    #expect(try asked() == ranges)
    return true
  }
}
