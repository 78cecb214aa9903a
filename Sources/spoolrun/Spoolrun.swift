internal import ArgumentParser

struct Spoolrun: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spoolrun",
    abstract: "Downloads the files whose URLs are dropped into a spool directory.",
    discussion: """
      One file, now, into the current directory:

        spoolrun get https://host/a.bin

      A job is a text file with a URL in it. Drop it into SPOOL/new:

        spoolrun init spool
        printf 'https://host/a.bin\\n' > spool/new/a
        spoolrun --once spool

      The downloaded file is then in spool/files, and the job with its receipt in spool/done. A job that was given up \
      is in spool/failed with the reason: `spoolrun status` shows it, and `spoolrun retry --failed` tries it again. \
      The state of each job is the directory it is in: see it with ls, change it with mv and rm (spool(5)).

      Exit status: 0 all due jobs are done; 1 a job was given up; 75 jobs wait for another attempt; \
      64 usage error; 66 no such spool; 69 no libcurl; 73 cannot create; 74 input/output error; 78 configuration error.
      """,
    version: "0.3.0",
    subcommands: [
      Get.self, Run.self, Init.self, Doctor.self, Add.self, Subscribe.self, Verify.self, Status.self, Report.self,
      Hold.self, Release.self,
      Retry.self, Prioritise.self, Cancel.self, Relink.self, Clean.self,
    ],
    defaultSubcommand: Run.self)

  /// Each command states its name: to derive it from its type takes a tenth of an idle run.
  static var commandNames: [String] { configuration.subcommands.map { $0._commandName } + ["help"] }
}
