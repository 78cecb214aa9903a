/*
 * Standing orders: two workers look at one list and drop a job for each new entry, while jobs move, people move the
 * order, and workers die, freeze or lose their power at every step.
 * As in spool.pml, an atomic block is a system call of the Swift function that its comment names. README.md says what
 * is checked.
 *
 * Configuration, by -D:
 *   ENTRIES     1 or 2 in the list
 *   SHARED      the workers are on two hosts; otherwise on one
 *   UNORDERED   a power cut keeps or loses each name for itself; otherwise it leaves an earlier state
 *   CRASHES CUTS FREEZES GESTURES FAILURES   how often each may happen
 *   BUG_…       a deliberate mistake, which has to be found
 */

#ifndef ENTRIES
#define ENTRIES 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef FREEZES
#define FREEZES 0
#endif
#ifndef GESTURES
#define GESTURES 0
#endif
#ifndef FAILURES
#define FAILURES 0
#endif
#ifdef SHARED
#define HOST(w) (w)
#else
#define HOST(w) 0
#endif

#define WORKERS 2
#define OWNERS (WORKERS + CRASHES + 2 * CUTS) /* a worker that comes again has another process id */
#define INODES 4                              /* of the order's file; 0 is none */
#define ALL ((1 << ENTRIES) - 1)              /* a set of entries has a bit for each */
#define HAS(set, e) (((set) >> (e)) & 1)

/* Directories. A job is TORN after a power cut that left its name without its text. */
#define NONE 0
#define NEW 1
#define CUR 2
#define PARTIAL 3
#define HOLD 4
#define FAILED 5
#define DONE 6
#define STANDING 7
#define TORN 8

/* Durable copies end in D: what a power cut leaves. */
byte loc = STANDING, own, ino = 1;        /* the order: directory, owner in the claim's name, inode */
byte locD = STANDING, ownD, inoD = 1;
byte seen[INODES + 1];                    /* `seen:` of each inode; a new text is durable before it has the name */
bool due = 1;                             /* a time of modification that is over */
byte job[ENTRIES], jobD[ENTRIES];         /* the directory of the entry's job */
bool text[ENTRIES];                       /* its text is durable */

byte lock[INODES + 1];                    /* flock(2): worker + 1 */
byte fd[WORKERS];                         /* the order's inode */
byte tmp[WORKERS];                        /* entries whose jobs are in tmp/, not yet in new/ */
bool written[WORKERS];                    /* their texts are durable */
byte me[WORKERS];                         /* the owner in the claim's name */
byte owners = WORKERS, ownerHost[OWNERS];
bool expired[OWNERS];                     /* no heartbeat within the lease */
bool killed[WORKERS], frozen[WORKERS];
byte crashes = CRASHES, cuts = CUTS, freezes = FREEZES, gestures = GESTURES, failures = FAILURES;

#define OURS(w) (loc == CUR && own == me[w] && ino == fd[w])

#define USED(i) (ino == i || inoD == i || fd[0] == i || fd[1] == i)
inline create(i) {
  i = (!USED(1) -> 1 : (!USED(2) -> 2 : (!USED(3) -> 3 : 4)));
  assert(!USED(i));
  lock[i] = 0
}

inline syncNames() {
  locD = loc; ownD = own; inoD = ino;
  jobD[0] = job[0];
  jobD[ENTRIES - 1] = job[ENTRIES - 1]
}

inline release(w) {
  if
  :: fd[w] && lock[fd[w]] == w + 1 -> lock[fd[w]] = 0
  :: else
  fi;
  fd[w] = 0
}

/* One step of Spool.places: is the entry's job in this directory? */
inline look(dir) {
  if
  :: !x && job[e] == dir -> x = 1
  :: else
  fi
}

/* Claim.replaceFile: a new inode in the place of the old. */
inline replace(set) {
  atomic { /* Claim.ownership */
    if
    :: !OURS(w) -> goto gone
    :: else -> create(x); seen[x] = set
    fi
  }
  /* the copy's fdatasync; fsync of cur/ and of the directory that the order comes from */
#ifdef UNORDERED
  atomic { locD = loc; ownD = own; inoD = ino }
#else
  atomic { syncNames() }
#endif
  atomic { /* exchange */
    if
#ifdef BUG_RECORD_BLIND
    :: !(loc == CUR && own == me[w]) -> assert(false) /* a rename makes a second order of it */
#else
    :: !(loc == CUR && own == me[w]) -> x = 0; goto gone
#endif
    :: else -> release(w); ino = x; fd[w] = x; lock[x] = w + 1; x = 0
    fi
  }
}

proctype Worker(byte w) provided (!frozen[w] || killed[w]) {
  byte from, owner, x, e, known, missing;

life:
  {
    skip;
scan: /* Lookout.read, Spool.take */
    atomic {
      release(w); tmp[w] = 0; written[w] = 0; from = 0; owner = 0; x = 0; e = 0; known = 0; missing = 0;
      if
      :: loc == STANDING && due
      :: loc == CUR && own != me[w] && (ownerHost[own] == HOST(w) || expired[own])
      :: loc == CUR && own == me[w] /* this worker let go of it */
      fi;
      from = loc; owner = (from == CUR -> own : 0); fd[w] = ino
    }
    atomic { /* Spool.claim: flock. After a lease without a heartbeat the owner is frozen, and keeps its locks. */
      if
      :: lock[fd[w]] && lock[fd[w]] != w + 1 && !(from == CUR && expired[owner]) -> goto scan
      :: else ->
        if
        :: !lock[fd[w]] -> lock[fd[w]] = w + 1
        :: else
        fi
      fi
    }
    atomic { /* Spool.claim: rename to a name of our own */
      if
      :: loc == from && (from != CUR || own == owner) -> loc = CUR; own = me[w]; expired[me[w]] = 0
      :: else -> goto scan
      fi
    }
    atomic { /* Spool.claim: confirm the inode */
      if
      :: OURS(w)
      :: !OURS(w) -> release(w);
        if
        :: loc == CUR && own == me[w] && lock[ino] -> /* its owner has just replaced it */
          loc = from; own = owner; goto scan
        :: else -> goto scan
        fi
      fi
    }
    if
    :: from == CUR -> replace(seen[fd[w]]) /* Claim.renew */
    :: else
    fi;

    /* Attempt.checkOrder */
    atomic { known = seen[fd[w]] }
    if
    :: atomic { failures -> failures--; goto park }
    :: skip
    fi;
#ifdef BUG_RECORD_FIRST
    replace(ALL)
#endif
#ifndef BUG_DROP_UNSWEPT
    atomic { tmp[1 - w] = tmp[1 - w] & known } /* Spool.sweepDrops: what a former owner has not dropped yet */
#endif
    do /* Spool.dropMissing: Spool.place for each new entry, by several looks */
    :: e < ENTRIES && HAS(known, e) -> atomic { e++ }
    :: e < ENTRIES && !HAS(known, e) ->
#ifndef BUG_DROP_BLIND
      look(DONE); look(NEW); look(PARTIAL); look(FAILED); look(HOLD);
#ifndef BUG_ONE_LOOK
      look(NEW); look(CUR); look(PARTIAL); look(HOLD); look(FAILED); look(DONE);
      look(DONE); look(FAILED); look(HOLD); look(PARTIAL); look(CUR); look(NEW);
#endif
#endif
      atomic { missing = missing | (x -> 0 : (1 << e)); x = 0; e++ }
    :: e == ENTRIES -> break
    od;
    if
    :: missing ->
      atomic { e = 0; tmp[w] = missing; written[w] = 0 } /* GroupDrop.drop, Spool.temporaryDrop */
#ifndef BUG_DROP_UNFLUSHED
      atomic { written[w] = 1 } /* fsync, or syncfs */
#endif
#ifndef BUG_DROP_UNCONFIRMED
      if
      :: !OURS(w) -> goto gone /* Claim.confirmation */
      :: else
      fi;
#endif
      do /* GroupDrop.enter, Spool.enter: rename without replacing */
      :: e < ENTRIES && !HAS(missing, e) -> atomic { e++ }
      :: atomic { e < ENTRIES && HAS(missing, e) && !HAS(tmp[w], e) -> goto gone }
      :: atomic { e < ENTRIES && HAS(missing, e) && HAS(tmp[w], e) ->
          assert(job[e] == NONE); /* an entry has one job, ever */
          job[e] = NEW; text[e] = written[w]; tmp[w] = tmp[w] & ~(1 << e); e++
        }
      :: e == ENTRIES -> break
      od;
#ifndef BUG_DROP_UNFLUSHED
      /* GroupDrop.finish */
#ifdef UNORDERED
      atomic { jobD[0] = job[0]; jobD[ENTRIES - 1] = job[ENTRIES - 1] }
#else
      atomic { syncNames() }
#endif
#endif
    :: else
    fi;
#ifndef BUG_RECORD_FIRST
    if
    :: known != ALL -> replace(ALL) /* OrderCheck.write, Claim.rewrite */
    :: else
    fi;
#endif

park: /* Claim.park */
    atomic {
      if
      :: loc == CUR && own == me[w] -> loc = STANDING; due = 0
      :: else
      fi;
      goto scan
    }

gone: /* Ending.letGo */
    goto scan
  } unless {
    atomic {
      killed[w];
      release(w); tmp[w] = 0; written[w] = 0; frozen[w] = 0;
      killed[w] = 0;
      expired[me[w]] = 1;
      me[w] = owners; ownerHost[me[w]] = HOST(w); owners++
    }
  };
  goto life
}

#define JOB_MOVES(e) \
  :: atomic { job[e] == NEW -> job[e] = CUR } \
  :: atomic { job[e] == CUR -> job[e] = DONE } \
  :: atomic { failures && job[e] == CUR -> failures--; job[e] = PARTIAL } \
  :: atomic { gestures && (job[e] == NEW || job[e] == CUR || job[e] == PARTIAL) -> gestures--; job[e] = HOLD } \
  :: atomic { gestures && job[e] == HOLD -> gestures--; job[e] = NEW }

/* A job that is parked or held may stay there. */
#define ENDED(e) (job[e] == DONE || job[e] == HOLD || job[e] == PARTIAL)

/* The jobs on their way, and what people do to them and to the order. */
proctype Others() {
  do
  JOB_MOVES(0)
#if ENTRIES == 2
  JOB_MOVES(1)
#endif
  :: atomic { gestures && (loc == CUR || loc == STANDING) -> gestures--; loc = HOLD }
  :: atomic { loc == HOLD -> loc = STANDING; due = 1 }
  :: atomic { loc == STANDING && !due && seen[ino] != ALL -> due = 1 }
  od
}

proctype World() {
  do
  :: atomic { crashes && !killed[0] && fd[0] -> crashes--; killed[0] = 1 }
  :: atomic { crashes && !killed[1] && fd[1] -> crashes--; killed[1] = 1 }
#if FREEZES
  /* SIGSTOP, or a host that stands still: its locks stay; its heartbeats do not come, so its lease ends. */
  :: atomic { freezes && !frozen[0] && fd[0] -> freezes--; frozen[0] = 1 }
  :: atomic { frozen[0] && !expired[me[0]] -> expired[me[0]] = 1 }
  :: atomic { frozen[0] -> frozen[0] = 0 }
#endif
#if CUTS
  /* The kernel writes back when it likes. */
#ifdef UNORDERED
  :: d_step { cuts -> locD = loc; ownD = own; inoD = ino }
  :: d_step { cuts -> jobD[0] = job[0] }
  :: d_step { cuts -> jobD[ENTRIES - 1] = job[ENTRIES - 1] }
#else
  :: d_step { cuts -> syncNames() }
#endif
  :: d_step { cuts -> text[0] = (job[0] != NONE); text[ENTRIES - 1] = (job[ENTRIES - 1] != NONE) }
  :: atomic { /* the machine's power is cut */
      cuts && !killed[0] && !killed[1] -> cuts--; killed[0] = 1; killed[1] = 1; due = 1;
      loc = locD; own = ownD; ino = inoD;
      job[0] = (jobD[0] && !text[0] -> TORN : jobD[0]);
      job[ENTRIES - 1] = (jobD[ENTRIES - 1] && !text[ENTRIES - 1] -> TORN : jobD[ENTRIES - 1])
    }
#endif
  /* Nothing can move any more. */
  :: timeout ->
    assert(loc == STANDING && seen[ino] == ALL);
    assert(ENDED(0) && ENDED(ENTRIES - 1)); /* each entry has become a job */
    break
  od
}

init {
  d_step { me[1] = 1; ownerHost[0] = HOST(0); ownerHost[1] = HOST(1) }
  atomic { run Worker(0); run Worker(1); run Others(); run World() }
}
