import Glibc
import TestSupport
import Testing

/// `contrib/spoolrun.cron` under Debian's cron, in a mount namespace in which its tables and its mailer are ours.
@Suite(
  .enabled("needs cron, root and a mount namespace") {
    try await Need.areMet(.program("cron"), .mounts)
  })
struct CronTests {
  /// Ends with the first run that cron has begun: within the next minute.
  @Test(.timeLimit(.minutes(30)))
  func `cron runs what is due, and mails nothing but what failed`() async throws {
    let scene = try Scene.echoing()
    try scene.spool.drop("good", scene.server.url("/good") + "\n")
    try scene.spool.drop("bad", scene.server.url("/gone") + "\n")
    let table = try readText(SourceTree.contrib("spoolrun.cron"))
      .replacing("*/5 ", with: "* ").replacing("* spoolrun ", with: "* root ")
      .replacing("/var/spool/spoolrun", with: scene.spool.root).replacing("PATH=", with: "PATH=\(scene.tools):")
    try writeFile("\(scene.tools)/table", table)
    let cron = try RunningCommand(
      ["/usr/bin/unshare", "-m", "/bin/sh", "-euc", Self.script, "cron", scene.tools], timeout: .seconds(400))
    defer { kill(-cron.processID, SIGKILL) }
    let mail = "\(scene.tools)/mail"
    try await waitUntil("cron has mailed", timeout: .seconds(300)) {
      if cron.isFinished { return true }
      return try fileStatus(mail) != nil && readFile(mail).suffix(4) == Array("END\n".utf8)[...]
    }
    kill(-cron.processID, SIGTERM)
    let result = try await cron.result()
    #expect(scene.isDone("good"), "\(result)")
    let text = try readText(mail)
    let body = text.split(separator: "\n\n", maxSplits: 1).last ?? ""
    #expect(
      body == "spoolrun: bad: http-404: 127.0.0.1 answered 404: no such file; given up: see failed/bad\nEND\n",
      "\(text)")
  }

  /// cron finds its mailer at a fixed path: a layer over that directory holds ours.
  private static let script = """
    cd "$1"
    mkdir layer
    mount -t tmpfs none layer
    mkdir layer/upper layer/work layer/tables
    printf '#!/bin/sh\\n{ cat; echo END; } >>%s/mail\\n' "$1" >layer/upper/sendmail
    chmod 755 layer/upper/sendmail
    mount -t overlay none -o "lowerdir=/usr/sbin,upperdir=layer/upper,workdir=layer/work" /usr/sbin
    mount --bind layer/tables /var/spool/cron/crontabs
    mkdir layer/d
    cp table layer/d/spoolrun
    chmod 644 layer/d/spoolrun
    mount --bind layer/d /etc/cron.d
    mount -t tmpfs none /run
    exec cron -f
    """
}
