import Glibc
import TestSupport

/// `LyingServer DIR`: serves each behaviour on ports of its own until standard input ends, for clients other than
/// spoolrun. In DIR, which has to exist, it leaves what a judge has to know, and `index` last. That has a line for
/// each behaviour, fields separated by tabs: name, group, ports (http, https, https that ends without close_notify;
/// 0: not served so), what the job declares, the fields of the journal's `response:` line. The bytes held and to be had
/// are in `DIR/N.holds` and `DIR/N.final`, N counted from 0.
///
/// The last line's server is an honest one that stops in the middle, for making interrupted downloads: `/VERSION/K`
/// sends the first K bytes of `previous` or `payload`, then nothing more.
@main
struct Serve {
  static func main() async throws {
    guard CommandLine.arguments.count == 2 else { throw TestSupportError("usage: LyingServer DIR") }
    let directory = CommandLine.arguments[1]
    let authority = try await CertificateAuthority()
    try writeFile("\(directory)/ca.pem", try readFile(authority.authority))

    let all = groups.flatMap { group, behaviours in behaviours.map { (group, $0) } }
    let servers = try all.map { try ScriptedServer($1.script) }
    let announcing = try await TLSFront(to: servers, authority: authority, announcesEnd: true, lifetime: lifetime)
    let cutting = try await TLSFront(to: servers, authority: authority, announcesEnd: false, lifetime: lifetime)
    let stopping = try ScriptedServer(stopInTheMiddle)

    var index = ""
    for (number, (group, behaviour)) in all.enumerated() {
      let ports: [UInt16] =
        switch group {
        case truncated: [0, 0, cutting.ports[number]]
        case framing: [servers[number].port, announcing.ports[number], cutting.ports[number]]
        default: [servers[number].port, announcing.ports[number], 0]
        }
      let declares = [
        behaviour.declares.contains(.size) ? "size" : "", behaviour.declares.contains(.checksum) ? "crc32" : "",
      ]
      let fields =
        [behaviour.name, group] + ports.map { "\($0)" }
        + [declares.joined(separator: " "), behaviour.facts.responseFields]
      index += fields.joined(separator: "\t") + "\n"
      try writeFile("\(directory)/\(number).holds", behaviour.holds)
      try writeFile("\(directory)/\(number).final", behaviour.final)
    }
    index += "stops in the middle\t\t\(stopping.port)\t0\t0\t\t\n"
    try writeFile("\(directory)/index.new", Array(index.utf8))
    guard rename("\(directory)/index.new", "\(directory)/index") == 0 else {
      throw TestSupportError("rename", "\(directory)/index", errno: errno)
    }
    var byte: UInt8 = 0
    while read(STDIN_FILENO, &byte, 1) > 0 {}
    withExtendedLifetime((announcing, cutting)) {}
    for server in servers + [stopping] { server.stop() }
  }
}

/// Seconds that the TLS fronts live at most.
private let lifetime = 7200

private let framing = "framing, cuts, stalls"
private let truncated = "truncated TLS"

private let groups = [
  ("206 and 416", rangeBehaviours), ("validators", validatorBehaviours), (framing, framingBehaviours),
  ("statuses", statusBehaviours), ("encodings and heads", encodingBehaviours), (truncated, tlsBehaviours),
]

private let stopInTheMiddle: ScriptedServer.Script = { request, reply in
  let parts = request.target.split(separator: "/")
  guard parts.count == 2, let count = Int(parts[1]), ["payload", "previous"].contains(parts[0]) else {
    return try reply.respond("404 Not Found", body: [])
  }
  let origin = Origin(bytes: parts[0] == "payload" ? payload : previous)
  let limit = count - (origin.rangeStart(request) ?? 0)
  if try origin.answer(request, reply, limit: limit) > 0 { try reply.stall() }
}
