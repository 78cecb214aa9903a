internal import ArgumentParser
internal import Glibc

@main
enum Main {
  static func main() {
    Terminal.openMissing()
    let arguments = RawArguments.all.map { String(decoding: $0, as: UTF8.self) }
    // Without any it would be the default command, which downloads.
    guard !arguments.isEmpty else {
      Terminal.error("started without arguments, not even its own name (execve(2)): what to do is not to be guessed")
      exit(ExitStatus.usage.rawValue)
    }
    DashedName.refuse(in: Array(arguments.dropFirst()))
    // Comes back only where all went well; else the command's own status stays.
    Spoolrun.main(Array(arguments.dropFirst()))
    if Terminal.hasLostOutput { exit(ExitStatus.inputOutput.rawValue) }
  }
}

struct Spoolrun: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spoolrun",
    abstract: "Downloads what is dropped into a spool directory.",
    discussion: """
      A job is a plain file with a URL in it, dropped into SPOOL/new:

        spoolrun init spool
        printf 'https://host/a.bin\\n' > spool/new/a
        spoolrun --once spool

      The payload then stands in spool/files, the job with its receipt in spool/done. \
      Every state is visible with ls, and mv and rm steer it: see spool(5). What was given up stands in spool/failed \
      with the reason: `spoolrun status` shows it, and `spoolrun retry --failed` tries it again.

      Exit status: 0 all that was due is done; 1 a job was given up; 75 jobs wait for another attempt; \
      64 usage; 66 no such spool; 69 no libcurl; 73 cannot create; 74 input/output error; 78 configuration.
      """,
    version: "0.1.0",
    subcommands: [
      Run.self, Init.self, Add.self, Verify.self, Status.self, Hold.self, Release.self, Retry.self, Cancel.self,
      Clean.self,
    ],
    defaultSubcommand: Run.self)
}
